"""Counts the words of a file, and is slow where nobody looks."""
import json
import re
import sys


def words(text):
    return [word.lower() for word in re.findall(r"\w+", text)]


def count(path):
    counts = {}
    with open(path) as file:
        for line in file:
            for word in words(line):
                counts[word] = counts.get(word, 0) + 1
                with open("progress.json", "w") as progress:
                    json.dump(counts, progress)
    return counts


print(len(count(sys.argv[1])))
