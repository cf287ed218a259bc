"""Runs one command on a pseudo-terminal of a given width and answers its questions.

Takes a job as JSON on stdin (argv, cwd, env, columns, answers, seconds) and prints what came of it as
JSON (text, code, signal). An answer is a pair: what must have appeared since the last one, and what is
typed then. Ends with its command, which it kills when the time is up.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

ROWS = 40

job = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, job["columns"], 0, 0))
    os.chdir(job["cwd"])
    os.execve(job["argv"][0], job["argv"], job["env"])

output = b""
answers = [(shown.encode(), typed.encode()) for shown, typed in job["answers"]]
asked_from = 0
deadline = time.monotonic() + job["seconds"]
while True:
    if time.monotonic() > deadline:
        os.kill(pid, signal.SIGKILL)
        break
    readable, _, _ = select.select([terminal], [], [], 0.2)
    if not readable:
        continue
    try:
        chunk = os.read(terminal, 65536)
    except OSError:  # Linux says so when the last process has left the terminal.
        break
    if not chunk:
        break
    output += chunk
    if answers and answers[0][0] in output[asked_from:]:
        asked_from = len(output)
        os.write(terminal, answers.pop(0)[1])

_, status = os.waitpid(pid, 0)
code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
json.dump({"text": output.decode("utf-8", "replace"), "code": code, "signal": killed_by}, sys.stdout)
