//! The libraries for job submission verifiers: the same script in each language says the same.

use super::tree::JSV_FILES;
use crate::testing::TempDir;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a verifier reads: three jobs with values that a shell could take for something else.
const INPUT: &str = "START\nPARAM VERSION 1.0\nPARAM CONTEXT client\nPARAM N a  b*c $HOME `id` \"q\" 'x'\n\
    PARAM l_hard h_vmem=1G,arch=lx-*,gpu\nPARAM q_hard all.q,d.q\nBEGIN\n\
    START\nPARAM N two\nPARAM ac a=4,b=2\nENV ADD TERM \nENV ADD FOO x  y\\nz $(id)\nBEGIN\nSTART\nBEGIN\nQUIT\n";

/// What each of the scripts below says about it.
const OUTPUT: &str = "SEND ENV\nSTARTED\nLOG INFO N is a  b*c $HOME `id` \"q\" 'x'\n\
    LOG INFO is true false get 1G  q true\nPARAM l_hard arch=lx-*,gpu\nPARAM l_hard arch=lx-*,gpu,h_rt=60\n\
    PARAM l_hard arch=sol,gpu,h_rt=60\nPARAM l_hard arch=sol,gpu,h_rt=60\nPARAM q_hard\n\
    LOG INFO got param VERSION=1.0\nLOG INFO got param CONTEXT=client\n\
    LOG INFO got param N=a  b*c $HOME `id` \"q\" 'x'\nLOG INFO got param l_hard=arch=sol,gpu,h_rt=60\n\
    RESULT STATE CORRECT done  it\nSEND ENV\nSTARTED\nLOG INFO got env TERM=\nLOG INFO got env FOO=x  y\\nz $(id)\n\
    LOG INFO foo x  y\\nz $(id) true false false\nENV ADD A b c\nENV MOD FOO 2\nENV DEL TERM\nPARAM ac a=5,b=2\n\
    PARAM ac a=5\nPARAM ac a=5,c\nPARAM o\nRESULT STATE REJECT_WAIT later\nSEND ENV\nSTARTED\n\
    RESULT STATE REJECT the verifier came to no result\n";

const SHELL: &str = r#"
jsv_on_start() { jsv_send_env; }
n=0
jsv_on_verify() {
   n=$((n + 1))
   if [ "$n" = 1 ]; then
      jsv_log_info "N is $(jsv_get_param N)"
      jsv_log_info "is $(jsv_sub_is_param l_hard h_vmem) $(jsv_sub_is_param l_hard h_rt) get $(jsv_sub_get_param l_hard h_vmem) $(jsv_sub_get_param l_hard gpu) q $(jsv_sub_is_param q_hard d.q)"
      jsv_sub_del_param l_hard h_vmem
      jsv_sub_add_param l_hard h_rt 60
      jsv_sub_add_param l_hard arch sol
      jsv_sub_add_param l_hard gpu
      jsv_del_param q_hard
      jsv_show_params
      jsv_correct "done  it"
      jsv_reject twice
   elif [ "$n" = 2 ]; then
      jsv_show_envs
      jsv_log_info "foo $(jsv_get_env FOO) $(jsv_is_env FOO) $(jsv_is_env NO) $(jsv_is_param l_hard)"
      jsv_add_env A "b c"
      jsv_mod_env FOO 2
      jsv_del_env TERM
      jsv_del_env NOPE
      jsv_sub_add_param ac a 5
      jsv_sub_del_param ac b
      jsv_sub_add_param ac c
      jsv_set_param o ""
      jsv_reject_wait later
   fi
}
. ${SGE_ROOT}/util/resources/jsv/jsv_include.sh
jsv_main
"#;

const PERL: &str = r#"
use strict;
use warnings;
no warnings qw/uninitialized/;
use Env qw(SGE_ROOT);
use lib "$SGE_ROOT/util/resources/jsv";
use JSV qw( :DEFAULT jsv_send_env jsv_log_info );

jsv_on_start(sub {
   jsv_send_env();
});

my $n = 0;
sub truth { return $_[0] ? 'true' : 'false' }

jsv_on_verify(sub {
   my %params = jsv_get_param_hash();
   $n++;
   if ($n == 1) {
      jsv_log_info('N is ' . $params{N});
      jsv_log_info('is ' . truth(exists $params{l_hard}{h_vmem}) . ' ' . truth(jsv_sub_is_param('l_hard', 'h_rt'))
         . " get $params{l_hard}{h_vmem} " . jsv_sub_get_param('l_hard', 'gpu') . ' q ' . truth(exists $params{q_hard}{'d.q'}));
      jsv_sub_del_param('l_hard', 'h_vmem');
      jsv_sub_add_param('l_hard', 'h_rt=60');
      jsv_sub_add_param('l_hard', 'arch', 'sol');
      jsv_sub_add_param('l_hard', 'gpu');
      jsv_del_param('q_hard');
      jsv_show_params();
      jsv_correct('done  it');
      jsv_reject('twice');
   } elsif ($n == 2) {
      jsv_show_envs();
      jsv_log_info('foo ' . jsv_get_env('FOO') . ' ' . truth(jsv_is_env('FOO')) . ' ' . truth(jsv_is_env('NO')) . ' '
         . truth(jsv_is_param('l_hard')));
      jsv_add_env('A', 'b c');
      jsv_mod_env('FOO', 2);
      jsv_del_env('TERM');
      jsv_del_env('NOPE');
      jsv_sub_add_param('ac', 'a', $params{ac}{a} + 1);
      jsv_sub_del_param('ac', 'b');
      jsv_sub_add_param('ac', 'c');
      jsv_set_param('o', '');
      jsv_reject_wait('later');
   }
});
jsv_main();
"#;

const TCL: &str = r#"
set sge_root $env(SGE_ROOT)
source "$sge_root/util/resources/jsv/jsv_include.tcl"
set n 0
proc truth {value} { if {$value == 1} { return true } else { return false } }
proc jsv_on_start {} { jsv_send_env }
proc jsv_on_verify {} {
   incr ::n
   if {$::n == 1} {
      jsv_log_info "N is [jsv_get_param N]"
      jsv_log_info "is [truth [jsv_sub_is_param l_hard h_vmem]] [truth [jsv_sub_is_param l_hard h_rt]] get [jsv_sub_get_param l_hard h_vmem] [jsv_sub_get_param l_hard gpu] q [truth [jsv_sub_is_param q_hard d.q]]"
      jsv_sub_del_param "l_hard" "h_vmem"
      jsv_sub_add_param "l_hard" "h_rt" 60
      jsv_sub_add_param l_hard arch sol
      jsv_sub_add_param l_hard gpu
      jsv_del_param q_hard
      jsv_show_params
      jsv_correct "done  it"
      jsv_reject twice
   } elseif {$::n == 2} {
      jsv_show_envs
      jsv_log_info "foo [jsv_get_env FOO] [truth [jsv_is_env FOO]] [truth [jsv_is_env NO]] [truth [jsv_is_param l_hard]]"
      jsv_add_env A "b c"
      jsv_mod_env FOO 2
      jsv_del_env TERM
      jsv_del_env NOPE
      set value [jsv_sub_get_param ac a]
      jsv_sub_add_param ac a [expr $value + 1]
      jsv_sub_del_param ac b
      jsv_sub_add_param ac c
      jsv_set_param o ""
      jsv_reject_wait later
   }
}
jsv_main
"#;

const PYTHON: &str = r#"
from os import getenv
import sys
sys.path.append("{0}/util/resources/jsv".format(getenv("SGE_ROOT")))
from JSV import *

n = 0

def truth(value):
    return "true" if value else "false"

def jsv_on_start():
    jsv_send_env()

def jsv_on_verify():
    global n
    n += 1
    if n == 1:
        jsv_log_info("N is " + jsv_get_param("N"))
        jsv_log_info("is %s %s get %s %s q %s" % (
            truth(jsv_sub_is_param("l_hard", "h_vmem")), truth(jsv_sub_is_param("l_hard", "h_rt")),
            jsv_sub_get_param("l_hard", "h_vmem"), jsv_sub_get_param("l_hard", "gpu"),
            truth(jsv_sub_is_param("q_hard", "d.q"))))
        jsv_sub_del_param("l_hard", "h_vmem")
        jsv_sub_add_param("l_hard", "h_rt", 60)
        jsv_sub_add_param("l_hard", "arch", "sol")
        jsv_sub_add_param("l_hard", "gpu")
        jsv_del_param("q_hard")
        jsv_show_params()
        jsv_correct("done  it")
        jsv_reject("twice")
    elif n == 2:
        jsv_show_envs()
        jsv_log_info("foo %s %s %s %s" % (
            jsv_get_env("FOO"), truth(jsv_is_env("FOO")), truth(jsv_is_env("NO")), truth(jsv_is_param("l_hard"))))
        jsv_add_env("A", "b c")
        jsv_mod_env("FOO", 2)
        jsv_del_env("TERM")
        jsv_del_env("NOPE")
        jsv_sub_add_param("ac", "a", str(int(jsv_sub_get_param("ac", "a")) + 1))
        jsv_sub_del_param("ac", "b")
        jsv_sub_add_param("ac", "c")
        jsv_set_param("o", "")
        jsv_reject_wait("later")

jsv_main()
"#;

/// What a script says; `None` where its interpreter is missing.
fn said(root: &Path, interpreter: &str, script: &str) -> Option<String> {
    let path = root.join("script");
    std::fs::write(&path, script).unwrap();
    let child = Command::new(interpreter)
        .arg(&path)
        .env("SGE_ROOT", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take().unwrap().write_all(INPUT.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{interpreter}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_verifier_says_the_same_in_every_language() {
    let dir = TempDir::new("libraries");
    let folder = dir.path().join("util/resources/jsv");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text, _) in JSV_FILES {
        std::fs::write(folder.join(name), text).unwrap();
    }
    for (interpreter, script) in [
        ("sh", SHELL),
        ("bash", SHELL),
        ("dash", SHELL),
        ("perl", PERL),
        ("tclsh", TCL),
        ("python3", PYTHON),
    ] {
        if let Some(said) = said(dir.path(), interpreter, script) {
            assert_eq!(said, OUTPUT, "{interpreter}");
        }
    }
}
