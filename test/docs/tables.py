"""What this test does not run, by whom it is run instead; and what stands for placeholders.

Every row is for documents whose path matches the first expression, and commands that hold the
second. A row that is for no command any more is a failure.
"""

import collections
import datetime

Elsewhere = collections.namedtuple("Elsewhere", "file text by")
Filling = collections.namedtuple("Filling", "file text by")
Exit = collections.namedtuple("Exit", "file text code")

NOBODY = "nobody: "
BY_HAND = NOBODY + "it is done by hand, "
LONG = NOBODY + "a run takes long, and says what it needs when something is missing; "
BUILDS = NOBODY + "this test is part of it"

# by: the test that runs it, by its path, or NOBODY and the reason.
ELSEWHERE = [Elsewhere(*row) for row in (
    # The tutorial is run from end to end.
    ("^scheduler/docs/first-day", "", "test/e2e/firstday_test.go"),
    ("^test/e2e/firstday/", "", "test/e2e/firstday_test.go"),

    # What wants a cluster.
    ("", r"^tranche serve --cluster kubernetes", "test/e2e/controlplane.go"),
    ("^README", r"^kube-scheduler ", "test/e2e/controlplane.go"),
    ("^scheduler/server/", r"^tranche serve --config F.yaml", "test/tls/run.py"),
    ("", r"^tranche probe --once --print", "test/e2e/probe_test.go"),
    ("^scheduler/docs/agent", r"^tranche-node --(config|help)", "test/agent"),
    ("", r"^kubectl apply .*charts/tranche/crds/", "test/charts/cluster_test.go"),
    ("^charts/README", r"^kubectl apply -f charts/rbac", "test/charts/cluster_test.go"),
    ("^charts/README", r"^kubectl apply -f certificates/", "test/charts/cluster_test.go"),
    ("^charts/README", r"^kubectl apply -f charts/(result-keys|probe)\.yaml",
     "test/charts/cluster_test.go"),
    ("", r"^kubectl apply -f charts/reservation", "test/charts/cluster_test.go"),
    ("^charts/README", r"^charts/certificates.sh", "test/charts/certificates_test.go"),
    ("^charts/README", r"^kubectl patch daemonset tranche-probe", "test/e2e/probe_test.go"),
    ("", r"^kubectl create (cluster)?rolebinding .*-viewer", "test/e2e/pages_test.go"),
    ("", r"^kubectl create (cluster)?rolebinding tranche-", "test/e2e/controlplane.go"),
    ("", r"^kubectl get gpuquotaviews", "test/e2e/firstday_test.go"),
    ("", r"^kubectl get gr$", NOBODY + "its names are looked up in charts/tranche/crds"),
    ("", r"^kubectl annotate .*checkpointed-at", "test/e2e/teams_test.go"),
    ("^scheduler/docs/cli", r"^kubectl (proxy|port-forward|create|get secret)",
     "test/e2e/pages_proxy_test.go"),
    ("^scheduler/docs/cli", r"^tranche top .*--ca-file", "test/e2e/pages_proxy_test.go"),
    ("^scheduler/docs/migration", r"^kubectl (apply -f kueue|patch gpuquota)",
     "test/e2e/beside_kueue_test.go"),
    ("", r"^kubectl .*(get pods|logs|delete)", NOBODY + "nothing of it is ours"),
    ("", r"^helm (install|test|upgrade|uninstall) ",
     NOBODY + "test/charts renders with Helm's library, and knows the values of the chart"),

    # What wants other programs.
    ("", r"^docker build", NOBODY + "charts/image/check.sh looks at what goes into the image"),
    ("", r"\bpromtool (check|test)", "test/monitoring/run.py"),
    ("^scheduler/docs/cli", r"^tranche man \| man", "test/cli/run.py"),
    ("^README", r"^git clone", NOBODY + "where the sources lie is the reader's"),
    ("^README", r"^scheduler/quickstart\.sh", "test/docs/world.py"),
    ("", r"^charts/dashboards/make\.py", "test/monitoring/run.py"),
    ("", r"^charts/image/check\.sh", "test/run.sh"),
    ("^release/", r"^release/make\.py", "test/release/run.py"),

    # Building, testing and measuring.
    ("", r"^(cmake|ctest|ninja) ", BUILDS),
    ("", r"^(test/run\.sh|\.ci/run|test/install-deps\.sh)", BUILDS),
    ("", r"^test/coverage\.sh", LONG + "of all tests with counters"),
    ("^test/bench/", r"test/bench/run\.py", "test/bench/run.py"),
    ("^test/cli/", r"test/cli/run\.py", "test/cli/run.py"),
    ("^test/docs/", r"test/docs/run\.py", "test/docs/run.py"),
    ("^test/(page|tls|monitoring)/", r"test/\w+/run\.(py|sh)", BUILDS),
    ("^test/(allocator|card|kubelet|nvidia)/", "", BY_HAND + "with a card, as root or for hours"),
    ("^test/plants/", r"test/plants/run\.py", BY_HAND + "for hours"),
    ("^test/(e2e|charts)/|^bench/", r"go test|build\.sh", BUILDS),
    ("^test/torture/", r"torture_tests", BUILDS),
    ("^test/sim/", r"tranche-sim|same_digests\.sh", "test/sim/tool/main.cc"),
    ("", r"tranche-bench ", "test/bench/run.py"),
    ("^bench/", r"bench/figures\.py", "test/bench/run.py"),
    ("^bench/peers/", r"^bench/peers/burst.py ", "test/e2e/peers_test.go"),
    ("^bench/", r"build/plot/bin/", BY_HAND + "it draws pictures for people"),
)]


def month(back=0, ahead=0):
    """The first of a month, as far from this one; of the last one by back=1."""
    today = datetime.datetime.now(datetime.timezone.utc).date().replace(day=1)
    if back:
        today = (today - datetime.timedelta(days=1)).replace(day=1)
    if ahead:
        today = (today + datetime.timedelta(days=32)).replace(day=1)
    return today.isoformat()


def fillings(world):
    """What stands for what a reader has to put in, in the order in which it is done."""
    url = f"http://127.0.0.1:{world.port}"
    return [Filling(*row) for row in (
        ("", r"\b(NAMESPACE|NS)/POD\b", "team-language/pretrain-next"),
        ("^scheduler/docs/security", r"\bNAMESPACE/ACCOUNT\b", "team-language/me"),
        ("^scheduler/docs/preemption", r"\bprod/serve-0\b", "team-vision/train-next"),
        ("", r"\bCOMMAND\b", "nodes"),
        ("", r"--server URL\b", f"--server {url}"),
        ("", r"--context C\b", "--context prod"),
        ("^scheduler/docs/devices", r"\bFILE\b", "test/cases/topologies/dgx1-v100.txt"),
        ("", r"validate -f FILE\b", "validate -f my-quotas.yaml"),
        ("^scheduler/docs/cli", r"\bEDITS\.yaml\b", "my-edits.yaml"),
        ("^scheduler/docs/cli", r"--ledger FILE\b", "--ledger ledger.db"),
        ("^scheduler/docs/cli", r"\bteam\|[\w|]+", "team"),
        ("^scheduler/docs/cli", r"\btable\|[\w|]+", "csv"),
        ("^scheduler/docs/cli", r"\bYYYY-MM\b", month(back=1)[:7]),
        ("", r"127\.0\.0\.1:8001\b", f"127.0.0.1:{world.pages.server_port}"),
        ("", r"\b2026-10\b(?!-)", month(back=1)[:7]),
        ("", r"\b2026-11-01\b", month()),
        ("", r"\b2026-12-01\b", month(ahead=1)),
    )]


# Answers that are shown and that the quickstart's server does not give.
ANSWERS_ELSEWHERE = [Elsewhere(*row) for row in (
    ("^scheduler/docs/admin-guide", r"^tranche top --advise",
     "test/unit/scheduler/api/advice_api_test.cc"),
)]

# Commands whose answer is a no.
EXITS = [Exit(*row) for row in (
    ("^scheduler/docs/admin-guide", r"^tranche validate -f vision.yaml", 1),
)]
