"""Histories of the launch lab for tests: the tool makes the database, the test its rows."""
import sqlite3

from recorded_programs import tracer


def emptied(path):
    tracer("launch", "-n", "1", "--warm-up", "0", "--untraced-every", "0", "--history", path, "--", "/bin/true")
    database = sqlite3.connect(path)
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("DELETE FROM series")
    return database


def insert(database, table, **row):
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
