#!/usr/bin/env python3
"""An example of a job submission verifier in Python. See jsv(5).

It gives jobs without a time limit one of an hour, and rejects those that ask for more than a week.
"""

import os
import sys

sys.path.append(os.path.join(os.environ["SGE_ROOT"], "util/resources/jsv"))
from JSV import *


def jsv_on_verify():
    limit = jsv_sub_get_param("l_hard", "h_rt")
    if not limit:
        jsv_sub_add_param("l_hard", "h_rt", 3600)
        jsv_correct("h_rt is one hour unless it is asked for")
    elif limit.isdigit() and int(limit) > 604800:
        jsv_reject("a job may run for a week at most: ask for h_rt=604800 or less")
    else:
        jsv_accept()


jsv_main()
