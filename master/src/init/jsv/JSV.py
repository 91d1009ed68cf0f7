"""Job submission verifiers in Python: import everything of this module, define jsv_on_start and
jsv_on_verify in the script, and call jsv_main. See jsv(5).

It runs under Python 3 and 2. Bytes that are not UTF-8 come and go unchanged under Python 3.
"""

import sys

__all__ = [
    "jsv_main", "jsv_get_param_hash", "jsv_accept", "jsv_correct", "jsv_reject", "jsv_reject_wait",
    "jsv_clear_params", "jsv_clear_envs", "jsv_show_params", "jsv_show_envs",
    "jsv_is_param", "jsv_get_param", "jsv_set_param", "jsv_del_param",
    "jsv_sub_is_param", "jsv_sub_get_param", "jsv_sub_add_param", "jsv_sub_del_param",
    "jsv_is_env", "jsv_get_env", "jsv_add_env", "jsv_mod_env", "jsv_del_env",
    "jsv_send_env", "jsv_log_info", "jsv_log_warning", "jsv_log_error", "jsv_send_command",
]

# In the order in which they come, also under Python 2.
_param_names = []
_params = {}
_env_names = []
_envs = {}
_state = ["waiting"]

if sys.version_info[0] >= 3:
    _in, _out = sys.stdin.buffer, sys.stdout.buffer

    def _decoded(line):
        return line.decode("utf-8", "surrogateescape")

    def _encoded(line):
        return line.encode("utf-8", "surrogateescape")
else:
    _in, _out = sys.stdin, sys.stdout

    def _decoded(line):
        return line

    def _encoded(line):
        return line


def jsv_send_command(*words):
    """Says one line of the protocol."""
    line = " ".join(str(word) for word in words).replace("\n", "\\n")
    _out.write(_encoded(line + "\n"))
    _out.flush()


def jsv_log_info(message=""):
    jsv_send_command("LOG", "INFO", message)


def jsv_log_warning(message=""):
    jsv_send_command("LOG", "WARNING", message)


def jsv_log_error(message=""):
    jsv_send_command("LOG", "ERROR", message)


def jsv_send_env():
    """In jsv_on_start: wants the environment of the next job."""
    if _state[0] == "starting":
        jsv_send_command("SEND", "ENV")
    else:
        jsv_log_error("jsv_send_env is for jsv_on_start alone")


def _keep(names, values, name, value):
    if name not in values:
        names.append(name)
    values[name] = value


def _drop(names, values, name):
    if name in values:
        names.remove(name)
        del values[name]


def jsv_clear_params():
    del _param_names[:]
    _params.clear()


def jsv_clear_envs():
    del _env_names[:]
    _envs.clear()


def jsv_show_params():
    for name in _param_names:
        jsv_log_info("got param %s=%s" % (name, _params[name]))


def jsv_show_envs():
    for name in _env_names:
        jsv_log_info("got env %s=%s" % (name, _envs[name]))


def jsv_get_param_hash():
    """All parameters, each as its text."""
    return dict(_params)


def jsv_is_param(name):
    return name in _params


def jsv_get_param(name):
    return _params.get(name, "")


def jsv_set_param(name, value):
    if value is None or str(value) == "":
        _drop(_param_names, _params, name)
        jsv_send_command("PARAM", name)
    else:
        _keep(_param_names, _params, name, str(value))
        jsv_send_command("PARAM", name, value)


def jsv_del_param(name):
    if name in _params:
        jsv_set_param(name, "")


def jsv_is_env(name):
    return name in _envs


def jsv_get_env(name):
    return _envs.get(name, "")


def jsv_add_env(name, value=""):
    _keep(_env_names, _envs, name, str(value))
    jsv_send_command("ENV", "ADD", name, value)


def jsv_mod_env(name, value=""):
    _keep(_env_names, _envs, name, str(value))
    jsv_send_command("ENV", "MOD", name, value)


def jsv_del_env(name):
    if name in _envs:
        _drop(_env_names, _envs, name)
        jsv_send_command("ENV", "DEL", name)


def _entries(name):
    """The entries of a list as pairs of name and value, which is None where there is no "="."""
    pairs = []
    for entry in jsv_get_param(name).split(","):
        if entry:
            key, equals, value = entry.partition("=")
            pairs.append((key, value if equals else None))
    return pairs


def _set_entries(name, pairs):
    jsv_set_param(name, ",".join(key if value in (None, "") else "%s=%s" % (key, value) for key, value in pairs))


def jsv_sub_is_param(name, key):
    return any(known == key for known, _ in _entries(name))


def jsv_sub_get_param(name, key):
    for known, value in _entries(name):
        if known == key:
            return value or ""
    return ""


def jsv_sub_add_param(name, key, value=None):
    pairs = _entries(name)
    if jsv_sub_is_param(name, key):
        pairs = [(known, value if known == key else old) for known, old in pairs]
    else:
        pairs.append((key, value))
    _set_entries(name, pairs)


def jsv_sub_del_param(name, key):
    if jsv_sub_is_param(name, key):
        _set_entries(name, [pair for pair in _entries(name) if pair[0] != key])


def _result(state, message):
    """The first result of a job counts."""
    if _state[0] == "verifying":
        _state[0] = "waiting"
        jsv_send_command("RESULT", "STATE", state, message)


def jsv_accept(message=""):
    _result("ACCEPT", message)


def jsv_correct(message=""):
    _result("CORRECT", message)


def jsv_reject(message=""):
    _result("REJECT", message)


def jsv_reject_wait(message=""):
    _result("REJECT_WAIT", message)


def _take(names, values, rest):
    name, _, value = rest.partition(" ")
    _keep(names, values, name, value)


def jsv_main():
    """Answers about one job after the other, until QUIT or the end of the input."""
    script = sys.modules["__main__"]
    while True:
        line = _decoded(_in.readline())
        if not line:
            return
        line = line.rstrip("\n")
        if line == "START":
            jsv_clear_params()
            jsv_clear_envs()
            _state[0] = "starting"
            getattr(script, "jsv_on_start", lambda: None)()
            jsv_send_command("STARTED")
        elif line.startswith("PARAM "):
            _take(_param_names, _params, line[6:])
        elif line.startswith("ENV ADD "):
            _take(_env_names, _envs, line[8:])
        elif line == "BEGIN":
            _state[0] = "verifying"
            script.jsv_on_verify()
            _result("REJECT", "the verifier came to no result")
        elif line == "QUIT":
            return
