# SPDX-License-Identifier: Apache-2.0
"""From the rounds' figures to medians and ratios, and their table."""
from statistics import median

BASE, SHIPPED, PLAIN = "base", "shipped", "plain"
TITLES = {BASE: "base", SHIPPED: "head as shipped", PLAIN: "head, without what base lacks"}
LOADS = {"full": "arrays of 100, as fast as they are taken", "1000": "1,000 single calls a second", "50": "50 single calls a second",
         "keyed": "single calls of 64 callers"}
SINGLE = {"cpu_us": "us", "sink_us": "us", "per_s": "1/s", "statements": "", "commits": "", "messages_in": "", "messages_out": "",
          "messages_stored": "", "switches": "", "wal_bytes": "B", "wal_page_bytes": "B", "p50_ms": "ms", "p99_ms": "ms"}
# What issue 20 wants of the head as shipped; a ratio's limit, and whether it is the least or the most.
WANTED = {"cpu_ratio_full": ("<=", 0.75), "cpu_ratio_1000": ("<=", 0.7), "cpu_ratio_50": ("<=", 0.6), "rate_ratio_keyed": (">=", 1.5),
          "bullmq_rate_ratio": (">=", 1.3), "p50_ms_50": ("<=", 8), "p99_ms_50": ("<=", 40), "idle_ms_per_s": ("<=", 10),
          "wal_bytes_full": ("<=", 3072), "rebuild_events_per_s": (">=", 40_000), "replay_per_s": (">=", 15_000)}


class Ratio:
    """Of one figure, head by base, of each pair: the median, the least and the most."""

    def __init__(self, values):
        self.middle, self.low, self.high = median(values), min(values), max(values)


def of_pairs(pairs, head, of_figures):
    """pairs: [{variant: {load: figures}}]; of_figures takes a variant's figures of a pair."""
    return Ratio([of_figures(pair[head]) / of_figures(pair[BASE]) for pair in pairs])


def all_ratios(pairs, head):
    """{name: Ratio}. CPU is divided by the sink's, whose work no version changes: a slower hour is slower for both. The raw ones are beside it."""
    found = {}
    for load in LOADS:
        found[f"cpu_ratio_{load}"] = of_pairs(pairs, head, lambda figures: figures[load]["cpu_us"] / figures[load]["sink_us"])
        found[f"cpu_ratio_{load}_raw"] = of_pairs(pairs, head, lambda figures: figures[load]["cpu_us"])
        found[f"rate_ratio_{load}"] = of_pairs(pairs, head, lambda figures: figures[load]["per_s"])
    found["cpu_ratio_idle"] = of_pairs(pairs, head, lambda figures: figures["idle"]["ms_per_s"])
    return found


def middle(pairs, variant, load, name):
    return median(pair[variant][load][name] for pair in pairs)


def medians(pairs, variant):
    """[(name, value, unit)] of one variant."""
    found = []
    for load in LOADS:
        found += [(f"{name}_{load}", middle(pairs, variant, load, name), unit) for name, unit in SINGLE.items()]
        for kind, unit in (("cpu", "us"), ("switches_of", "")):
            for process in pairs[0][variant][load][kind]:
                value = median(pair[variant][load][kind][process] for pair in pairs)
                found.append((f"{kind.replace('_of', '')}_{process.replace('-', '_')}_{load}", value, unit))
    found.append(("idle_ms_per_s", middle(pairs, variant, "idle", "ms_per_s"), "ms"))
    for process in pairs[0][variant]["idle"]["cpu"]:
        found.append((f"idle_ms_per_s_{process.replace('-', '_')}", median(pair[variant]["idle"]["cpu"][process] for pair in pairs) / 1000, "ms"))
    found.append(("rebuild_events_per_s", middle(pairs, variant, "rebuild", "per_s"), "1/s"))
    found.append(("replay_per_s", middle(pairs, variant, "replay", "per_s"), "1/s"))
    return found


def results(pairs, peers):
    """[{"name", "value", "unit"}]: names without a prefix are of the head as shipped."""
    found = []
    for head, prefix in ((SHIPPED, ""), (PLAIN, "plain_")):
        if head in pairs[0]:
            for name, ratio in all_ratios(pairs, head).items():
                found += [(prefix + name, ratio.middle, ""), (f"{prefix}{name}_low", ratio.low, ""), (f"{prefix}{name}_high", ratio.high, "")]
            found += [(prefix + name, value, unit) for name, value, unit in medians(pairs, head)]
    found += [(f"base_{name}", value, unit) for name, value, unit in medians(pairs, BASE)]
    found += peer_results(pairs, peers)
    return [{"name": name, "value": round(value, 4), "unit": unit} for name, value, unit in found]


def peer_results(pairs, peers):
    """peers: [{figure of tests/bench/outbox: value}], one for each pair."""
    if not peers:
        return []
    found = [(name, median(run[name] for run in peers), "1/s" if name.endswith("_per_s") else "us") for name in peers[0]]
    for title, name in (("bullmq_rate_ratio", "bullmq_2_per_s"), ("bullmq_1_rate_ratio", "bullmq_1_per_s"), ("memo_worker_4_rate_ratio", "memo_worker_4_per_s")):
        found.append((title, median(pair[SHIPPED]["full"]["per_s"] / run[name] for pair, run in zip(pairs, peers)), ""))
    return found


# ---- the tables ----

def print_all(pairs, peers, found):
    values = {row["name"]: row["value"] for row in found}
    for load, title in LOADS.items():
        print_load(pairs, load, title, peers if load == "full" else [])
    print_rest(pairs)
    for head in (SHIPPED, PLAIN):
        if head in pairs[0]:
            print_ratios(pairs, head)
    print("\nwanted of the head as shipped:")
    for name, (sign, limit) in WANTED.items():
        if name in values:
            reached = values[name] <= limit if sign == "<=" else values[name] >= limit
            print(f"  {name:<24}{values[name]:>12,.2f}  {sign} {limit:<8,g} {'reached' if reached else 'not reached'}")


def print_load(pairs, load, title, peers):
    columns = {"per_s": "mails/s", "cpu_us": "CPU us", "sink_us": "(sink)", "statements": "stmts", "commits": "commits", "messages_in": "msgs in",
               "messages_out": "out", "messages_stored": "stored", "switches": "switches", "wal_bytes": "WAL B", "p50_ms": "p50 ms", "p99_ms": "p99 ms"}
    print(f"\n{title}\n{'':<32}" + "".join(f"{head:>9}" for head in columns.values()))
    for variant in pairs[0]:
        row = [middle(pairs, variant, load, name) for name in columns]
        print(f"{TITLES[variant]:<32}" + "".join(f"{value:>9,.{0 if value >= 100 else 2}f}" for value in row))
    for title, name in (("BullMQ, nodemailer, 1", "bullmq_1"), ("BullMQ, nodemailer, 2", "bullmq_2"), ("memo worker, 1", "memo_worker_1"),
                        ("memo worker, 4", "memo_worker_4")):
        if peers:
            rate, cpu, sink = (median(run[f"{name}_{figure}"] for run in peers) for figure in ("per_s", "cpu_us", "cpu_us_smtp_sink"))
            print(f"{title:<32}{rate:>9,.0f}{cpu + sink:>9,.0f}{sink:>9,.0f}")
    print_processes(pairs, load)


def print_processes(pairs, load, of="a mail"):
    """CPU and context switches."""
    names = sorted({name for variant in pairs[0] for name in pairs[0][variant][load]["cpu"]})
    print(f"{f'  CPU us (switches) of {of}':<32}" + "".join(f"{TITLES[variant]:>32}" for variant in pairs[0]))
    for name in names:
        cells = []
        for variant in pairs[0]:
            figures = [pair[variant][load] for pair in pairs]
            if name in figures[0]["cpu"]:
                cpu, switches = (median(figure[kind].get(name, 0) for figure in figures) for kind in ("cpu", "switches_of"))
                cells.append(f"{cpu:,.0f} ({switches:,.2f})")
            else:
                cells.append("-")
        print(f"  {name:<30}" + "".join(f"{cell:>32}" for cell in cells))


def print_rest(pairs):
    print("\nnothing to do")
    print_processes(pairs, "idle", "a second")
    print(f"\n{'':<32}{'idle ms/s':>12}{'rebuild/s':>12}{'replay/s':>12}")
    for variant in pairs[0]:
        row = [middle(pairs, variant, load, name) for load, name in (("idle", "ms_per_s"), ("rebuild", "per_s"), ("replay", "per_s"))]
        print(f"{TITLES[variant]:<32}" + "".join(f"{value:>12,.0f}" for value in row))


def print_ratios(pairs, head):
    print(f"\n{TITLES[head]}, by base: median of {len(pairs)} pairs (least to most); CPU by smtp-sink's")
    for name, ratio in all_ratios(pairs, head).items():
        print(f"  {name:<24}{ratio.middle:>8.2f}   ({ratio.low:.2f} to {ratio.high:.2f})")


def print_statements(figures, most):
    """Of one variant in one pair: the statements with the most time."""
    for load in [*LOADS, "idle"]:
        print(f"\n{load}: executions and microseconds of a {'second' if load == 'idle' else 'mail'}")
        rows = sorted(figures[load]["by_statement"].items(), key=lambda row: -row[1][1])
        for query, (calls, us) in rows[:most]:
            print(f"  {calls:>9.3f} {us:>9.1f}  {' '.join(query.split())[:160]}")
