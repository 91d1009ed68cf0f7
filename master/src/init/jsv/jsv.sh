#!/bin/sh
# An example of a job submission verifier in the shell. See jsv(5).
# It gives jobs without a time limit one of an hour, and rejects those that ask for more than a week.

jsv_on_start() {
   :
}

jsv_on_verify() {
   limit=$(jsv_sub_get_param l_hard h_rt)
   case $limit in
   '')
      jsv_sub_add_param l_hard h_rt 3600
      jsv_correct "h_rt is one hour unless it is asked for"
      ;;
   *[!0-9]*) jsv_accept ;;
   *)
      if [ "$limit" -gt 604800 ]; then
         jsv_reject "a job may run for a week at most: ask for h_rt=604800 or less"
      else
         jsv_accept
      fi
      ;;
   esac
}

. "$SGE_ROOT/util/resources/jsv/jsv_include.sh"
jsv_main
