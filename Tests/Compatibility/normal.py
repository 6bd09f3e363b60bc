"""Normalizes the differences between two bare runs of a program. Each function takes text and returns text."""
import re

# Times of day and dates that a program prints of itself, process ids in brackets, addresses, /proc/PID.
_ALWAYS = [
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "ADDRESS"),
    (re.compile(r"/proc/\d+\b"), "/proc/PID"),
    (re.compile(r"==\d+=="), "==PID=="),
]
# Lines by which the agent says why it stopped to record. They are counted and shown, not compared.
AGENT = re.compile(r"^tracer: .*\n", re.M)


def always(text):
    for pattern, instead in _ALWAYS:
        text = pattern.sub(instead, text)
    return AGENT.sub("", text)


def agent_lines(text):
    return [line.strip() for line in AGENT.findall(text)]


def numbers(text):
    """Figures that are measurements: how fast, how often. The words around them stay; padding follows the figures."""
    text = re.sub(r"[-+]?\b\d[\d.,:]*(?:e[-+]?\d+)?", "N", text)
    return re.sub(r"(?:N(?:[kKMGmunμ]?(?:s|B|iB|b)?\b)?)", "N", re.sub(r"[ \t]+", " ", text))


def times(text):
    """1.23s, 45 ms, 12:34:56, 2026-11-21 and what stands for them in test runners."""
    text = re.sub(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d| [A-Z]{3,4})?", "TIME", text)
    text = re.sub(r"\b(?:\d+:)?\d{1,2}:\d\d(?:\.\d+)?\b", "TIME", text)
    return re.sub(r"\b\d+(?:\.\d+)? ?(?:s|ms|us|µs|ns|sec|secs|seconds?|min|msec|milliseconds)\b", "TIME", text)


def pids(text):
    """Process ids in the usual places: [123], (pid 123), pid=123, process 123."""
    text = re.sub(r"\[\d{2,7}\]", "[PID]", text)
    return re.sub(r"\b(pid|process|Process|PID|LWP|thread)([ =:]+)\d+", r"\1\2PID", text)


def without(*patterns):
    """Lines that match are omitted."""
    compiled = [re.compile(pattern) for pattern in patterns]

    def step(text):
        return "".join(line for line in text.splitlines(keepends=True) if not any(p.search(line) for p in compiled))
    return step


def replace(pattern, instead):
    compiled = re.compile(pattern, re.M)
    return lambda text: compiled.sub(instead, text)
