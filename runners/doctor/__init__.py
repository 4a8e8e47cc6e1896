"""What is wrong with this machine for measuring, why it matters, what it costs, and the commands that mend it.

`probe` reads the machine into `Facts`; `checks` judges facts, without I/O; nothing here changes the machine.
"""

from runners.doctor.checks import Check, examine
from runners.doctor.facts import Facts, probe
