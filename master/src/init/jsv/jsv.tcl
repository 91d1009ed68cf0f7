#!/usr/bin/env tclsh
# An example of a job submission verifier in Tcl. See jsv(5).
# It gives jobs without a time limit one of an hour, and rejects those that ask for more than a week.

source "$env(SGE_ROOT)/util/resources/jsv/jsv_include.tcl"

proc jsv_on_start {} {}

proc jsv_on_verify {} {
   set limit [jsv_sub_get_param l_hard h_rt]
   if {$limit eq ""} {
      jsv_sub_add_param l_hard h_rt 3600
      jsv_correct "h_rt is one hour unless it is asked for"
   } elseif {[string is integer -strict $limit] && $limit > 604800} {
      jsv_reject "a job may run for a week at most: ask for h_rt=604800 or less"
   } else {
      jsv_accept
   }
}

jsv_main
