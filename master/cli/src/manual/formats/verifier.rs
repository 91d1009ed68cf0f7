//! The page about job submission verifiers: where they are named, their protocol, and the libraries
//! for scripts.

use crate::manual::page::{File, Page};

/// What a verifier says, and what follows.
const ANSWERS: [(&str, &str); 7] = [
    ("SEND ENV", "Before STARTED: the environment of the job is wanted too."),
    (
        "STARTED",
        "The answer to START. The job follows: lines PARAM and ENV ADD, then BEGIN.",
    ),
    (
        "PARAM NAME [VALUE]",
        "Sets a parameter of the job, or deletes it where there is no value. Unknown names have no effect.",
    ),
    (
        "ENV ADD NAME VALUE, ENV MOD NAME VALUE, ENV DEL NAME",
        "Sets or removes a variable of the job.",
    ),
    (
        "LOG INFO|WARNING|ERROR TEXT",
        "A line for the user, on standard output of the command; of the verifier of the cell, for the log of the master.",
    ),
    (
        "RESULT STATE ACCEPT|CORRECT [TEXT]",
        "The job is accepted with the changes that were made. The text is not shown.",
    ),
    (
        "RESULT STATE REJECT|REJECT_WAIT [TEXT]",
        "The job is rejected. The command shows the text and ends with 1.",
    ),
];

/// Parameters, and the options that they come from.
const PARAMETERS: [(&str, &str); 9] = [
    (
        "VERSION, CONTEXT, CLIENT, USER, GROUP, JOB_ID",
        "Where the job comes from: 1.0; client or server; the command, or qmaster; the owner; the number, which the \
         verifier of the cell alone is told. They cannot be changed.",
    ),
    (
        "CMDNAME, CMDARGS, CMDARG0, CMDARG1 ...",
        "The script or command, the number of arguments, and these. The arguments can be changed. A change of CMDNAME \
         has no effect.",
    ),
    (
        "a, A, ar, b, ckpt, cwd, dl, e, hold_jid, hold_jid_ad, h, i, j, js, m, M, masterq, notify, N, o, P, p, par, R, r, \
         shell, S, tc, w",
        "The options of these names (qsub(1)). Dates are CCYYMMDDhhmm.SS, flags y or n.",
    ),
    ("ac", "The context, after all -ac, -dc and -sc."),
    ("c_occasion, c_interval", "-c, as letters or as seconds."),
    ("l_hard, l_soft, q_hard, q_soft", "-l and -q."),
    (
        "master_l_hard, slave_l_hard, slave_q_hard",
        "-l and -q behind -scope. Grid Engine 8.1.9 does not have them.",
    ),
    ("pe_name, pe_min, pe_max", "-pe."),
    (
        "t_min, t_max, t_step",
        "-t. They can be changed for arrays; a job does not become an array.",
    ),
];

/// Functions of the libraries.
const FUNCTIONS: [(&str, &str); 6] = [
    (
        "jsv_on_start, jsv_on_verify, jsv_main",
        "The script defines the first two and calls the third, which answers about one job after the other. In Perl the \
         first two take a function.",
    ),
    (
        "jsv_is_param, jsv_get_param, jsv_set_param, jsv_del_param",
        "Ask for and change a parameter.",
    ),
    (
        "jsv_sub_is_param, jsv_sub_get_param, jsv_sub_add_param, jsv_sub_del_param",
        "Ask for and change an entry of a list, such as h_rt of l_hard.",
    ),
    (
        "jsv_send_env, jsv_is_env, jsv_get_env, jsv_add_env, jsv_mod_env, jsv_del_env",
        "The environment. jsv_on_start calls the first one if the others are to know it.",
    ),
    (
        "jsv_accept, jsv_correct, jsv_reject, jsv_reject_wait",
        "The result. The first one of a job counts.",
    ),
    (
        "jsv_log_info, jsv_log_warning, jsv_log_error, jsv_show_params, jsv_show_envs",
        "Lines of LOG.",
    ),
];

/// The page.
pub(super) fn page() -> File {
    let mut page = Page::new("jsv", 5, "job submission verifiers");
    page.section("DESCRIPTION");
    page.paragraph(
        "A job submission verifier (JSV) is a program that sees a job before it is submitted, and accepts, changes or \
         rejects it. A user names verifiers with `-jsv` of qsub(1), on the command line, in a script, or in \
         sge_request(5). They run as the user. `jsv_url` of sge_conf(5) names the verifier of the cell, which sees every \
         job of qsub and qresub after those of the user; it runs on the master's host and goes on from job to job.",
    );
    page.paragraph(
        "The verifier of the cell runs as the account of the master, or as `USER` of `jsv_url USER@PATH`. It starts in the \
         directory of the cell. Each new version of its file is started with the next job. `qalter` does not ask it: \
         `jsv_allowed_mod` of sge_conf(5) names the parameters that may be altered.",
    );
    page.section("PROTOCOL");
    page.paragraph(
        "Both sides write lines. A verifier reads `START` and answers `STARTED`. Then it reads the job up to `BEGIN`, and \
         answers with any of the lines below, of which `RESULT` is the last. Then it reads the next `START`, or `QUIT`. \
         Words are upper case. A line break in a value is the two characters `\\n`.",
    );
    for (line, meaning) in ANSWERS {
        page.item(line, "", &[meaning]);
    }
    page.paragraph(
        "A verifier has 10 s for a job; `SGE_JSV_TIMEOUT` in the environment of a command, and `JSV_TIMEOUT` of \
         `qmaster_params` for that of the cell, say otherwise, in seconds. One that is late or ends is started once more, \
         and then the job is refused. Any other line, an unknown result, a change of what cannot be changed, and any line \
         on standard error refuse the job too, and the process is ended.",
    );
    page.section("PARAMETERS");
    page.paragraph("Only what was set is told.");
    for (names, meaning) in PARAMETERS {
        page.item(names, "", &[meaning]);
    }
    page.section("LIBRARIES");
    page.paragraph(
        "`jsv_include.sh` (any POSIX shell), `jsv_include.tcl`, `JSV.pm` and `JSV.py` have the same functions. In the shell \
         and in Tcl the arguments follow the name; functions that ask answer `true` or `false` in the shell.",
    );
    for (names, meaning) in FUNCTIONS {
        page.item(names, "", &[meaning]);
    }
    page.section("EXAMPLES");
    page.paragraph("Jobs without a time limit get one of an hour:");
    page.example(
        "#!/bin/sh\njsv_on_start() { :; }\njsv_on_verify() {\n    if [ \"$(jsv_sub_is_param l_hard h_rt)\" = false ]; then\n        \
         jsv_sub_add_param l_hard h_rt 3600\n        jsv_correct\n    else\n        jsv_accept\n    fi\n}\n\
         . \"$SGE_ROOT/util/resources/jsv/jsv_include.sh\"\njsv_main",
    );
    page.section("FILES");
    page.item(
        "SGE_ROOT/util/resources/jsv/",
        "",
        &["The libraries, and an example in each language."],
    );
    page.section("SEE ALSO");
    page.paragraph("qsub(1), sge_request(5), sge_conf(5), gridwright-master(8)");
    page.file("jsv", 5)
}
