"""The simulator again, by dictionaries and loops over lists: slow, short and independent."""

from sparselab.placement import place, policies


def replay(
    workload,
    policy,
    budget,
    make_estimator,
    replan_every=1,
    capacity=None,
    capacity_bytes=None,
    eviction="fifo",
    align=1,
    capture="resumed",
    architecture=None,
    **options,
):
    """Return one dictionary a request, with the names of the columns of the simulator's table."""
    retained = []  # dictionaries, the next to be evicted first
    history, rows = [], []
    for number, request in enumerate(workload.requests):
        tokens = request.tokens.tolist()
        parent, depth = None, 0
        for entry in retained:
            shared = shared_elements(tokens, entry["tokens"])
            newer = parent is not None and entry["number"] > parent["number"]
            if shared > depth or (shared == depth > 0 and newer):
                parent, depth = entry, shared
        overlap = 0
        if parent is not None:
            overlap = min(depth * workload.unit, request.length, parent["length"])
            # A checkpoint after a request's last token, which is always computed, is of no use.
            history.append((min(overlap, request.length - 1), parent["length"], parent["group"]))
            if eviction == "lru":
                retained.remove(parent)
                retained.append(parent)
        if number % replan_every == 0:
            known = list(history)
        held = [] if parent is None else [p for p in parent["positions"] if p <= overlap]
        resume = max([0] + [p for p in held if p < request.length])

        wanted = wanted_positions(
            policy,
            request,
            budget,
            make_estimator,
            known,
            align,
            min(overlap, request.length - 1),
            options,
        )
        uses_budget = "budget" in policies()[policy].needs
        if capture == "full":
            stored, extra = wanted, extra_tokens(wanted, held, resume)
        else:
            stored, extra = [p for p in wanted if p > resume or p in held], 0
            for p in sorted(held, reverse=True):
                if uses_budget and len(stored) < budget and p not in stored:
                    stored.append(p)
            stored.sort()

        kv = checkpoints = 0
        if architecture is not None:
            kv = request.length * architecture.kv_bytes_per_token * (policy != "no_cache")
            checkpoints = len(stored) * architecture.checkpoint_bytes
        retained.append(
            {
                "number": number,
                "tokens": tokens,
                "length": request.length,
                "group": request.group,
                "positions": stored,
                "bytes": kv + checkpoints,
            }
        )
        while retained and (
            (capacity is not None and len(retained) > capacity)
            or (capacity_bytes is not None and sum(e["bytes"] for e in retained) > capacity_bytes)
        ):
            retained.pop(0)
        rows.append(
            {
                "matched": -1 if parent is None else parent["number"],
                "overlap": overlap,
                "resume_point": resume,
                "recomputed": request.length - resume,
                "checkpoint_miss": overlap - resume,
                "hit": overlap > 0,
                "extra_prefill": extra,
                "positions": stored,
                "retained_entries": len(retained),
            }
        )
    return rows


def shared_elements(a, b):
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count


def wanted_positions(policy, request, budget, make_estimator, known, align, overlap, options):
    distribution = None
    if policy == "optimal":
        estimator = make_estimator()
        for observation in known:
            estimator.observe(*observation)
        distribution = estimator.distribution(request.length, request.group)
    if policy == "branch":
        options = {**options, "overlap": overlap}
    schedule = place(policy, request.length, budget, distribution, align, **options)
    return schedule.positions.tolist()


def extra_tokens(wanted, held, resume):
    """Mark every token that must be computed again to stand on a wanted position, and count."""
    again = set()
    for position in wanted:
        if position <= resume and position not in held:
            start = max([0] + [p for p in held if p <= position])
            again.update(range(start, position))
    return len(again)
