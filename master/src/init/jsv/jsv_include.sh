# Job submission verifiers in the shell: source this file, define jsv_on_start and jsv_on_verify, and
# call jsv_main. It needs nothing but a POSIX shell, and calls no other program. See jsv(5).
#
#    jsv_on_start() { :; }
#    jsv_on_verify() {
#       if [ "$(jsv_sub_is_param l_hard h_rt)" = false ]; then
#          jsv_sub_add_param l_hard h_rt 1:0:0
#          jsv_correct "h_rt was added"
#       else
#          jsv_accept
#       fi
#    }
#    . "$SGE_ROOT/util/resources/jsv/jsv_include.sh"
#    jsv_main
#
# Names are checked before they become variables of the shell, and values are never evaluated.

: "${jsv_logging_enabled:=false}"
: "${jsv_logfile:=${TMPDIR:-/tmp}/jsv_$$.log}"

__jsv_state=waiting
__jsv_params=
__jsv_envs=

__jsv_is_name() {
   case $1 in
   '' | *[!A-Za-z0-9_]*) return 1 ;;
   esac
}

# The protocol goes to a file that did not exist, where jsv_logging_enabled is true.
__jsv_log() {
   if [ "$jsv_logging_enabled" = true ]; then
      if [ -z "$__jsv_has_log" ]; then
         __jsv_has_log=$( (umask 077 && set -C && : >"$jsv_logfile") 2>/dev/null && echo yes || echo no)
      fi
      if [ "$__jsv_has_log" = yes ]; then
         printf '%s\n' "$1" >>"$jsv_logfile"
      fi
   fi
}

# Says one line of the protocol.
jsv_send_command() {
   __jsv_word=$1
   shift
   while [ $# -gt 0 ]; do
      __jsv_word="$__jsv_word $1"
      shift
   done
   __jsv_log ">>> $__jsv_word"
   printf '%s\n' "$__jsv_word"
}

jsv_log_info() { jsv_send_command LOG INFO "$*"; }
jsv_log_warning() { jsv_send_command LOG WARNING "$*"; }
jsv_log_error() { jsv_send_command LOG ERROR "$*"; }

# In jsv_on_start: wants the environment of the next job.
jsv_send_env() {
   if [ "$__jsv_state" = starting ]; then
      jsv_send_command SEND ENV
   else
      jsv_log_error "jsv_send_env is for jsv_on_start alone"
   fi
}

# Keeps the value $3 of the parameter or variable $2. $1 is param or env.
__jsv_keep() {
   __jsv_is_name "$2" || return 0
   __jsv_value=$3
   if [ "$1" = param ]; then
      case " $__jsv_params" in
      *" $2 "*) ;;
      *) __jsv_params="$__jsv_params$2 " ;;
      esac
   else
      case " $__jsv_envs" in
      *" $2 "*) ;;
      *) __jsv_envs="$__jsv_envs$2 " ;;
      esac
   fi
   eval "jsv_$1_$2=\$__jsv_value"
}

__jsv_has() {
   __jsv_is_name "$2" && eval "[ -n \"\${jsv_$1_$2+x}\" ]"
}

__jsv_print() {
   if __jsv_has "$1" "$2"; then
      eval "printf '%s\\n' \"\$jsv_$1_$2\""
   fi
}

__jsv_truth() {
   if "$@"; then
      echo true
   else
      echo false
   fi
}

__jsv_drop() {
   if __jsv_is_name "$2"; then
      eval "unset jsv_$1_$2"
   fi
}

jsv_clear_params() {
   while [ -n "$__jsv_params" ]; do
      __jsv_drop param "${__jsv_params%% *}"
      __jsv_params=${__jsv_params#* }
   done
}

jsv_clear_envs() {
   while [ -n "$__jsv_envs" ]; do
      __jsv_drop env "${__jsv_envs%% *}"
      __jsv_envs=${__jsv_envs#* }
   done
}

__jsv_show() {
   __jsv_names=$2
   while [ -n "$__jsv_names" ]; do
      __jsv_name=${__jsv_names%% *}
      __jsv_names=${__jsv_names#* }
      if __jsv_has "$1" "$__jsv_name"; then
         eval "jsv_log_info \"got $1 $__jsv_name=\$jsv_$1_$__jsv_name\""
      fi
   done
}

jsv_show_params() { __jsv_show param "$__jsv_params"; }
jsv_show_envs() { __jsv_show env "$__jsv_envs"; }

jsv_is_param() { __jsv_truth __jsv_has param "$1"; }
jsv_get_param() { __jsv_print param "$1"; }

jsv_set_param() {
   if [ -z "$2" ]; then
      __jsv_drop param "$1"
      jsv_send_command PARAM "$1"
   else
      __jsv_keep param "$1" "$2"
      jsv_send_command PARAM "$1" "$2"
   fi
}

jsv_del_param() {
   if __jsv_has param "$1"; then
      jsv_set_param "$1" ""
   fi
}

jsv_is_env() { __jsv_truth __jsv_has env "$1"; }
jsv_get_env() { __jsv_print env "$1"; }

jsv_add_env() {
   __jsv_keep env "$1" "$2"
   jsv_send_command ENV ADD "$1" "$2"
}

jsv_mod_env() {
   __jsv_keep env "$1" "$2"
   jsv_send_command ENV MOD "$1" "$2"
}

jsv_del_env() {
   if __jsv_has env "$1"; then
      __jsv_drop env "$1"
      jsv_send_command ENV DEL "$1"
   fi
}

# Looks for the entry $2 in the list that the parameter $1 is. __jsv_rest becomes the list with the
# entry $3 in its place, or without it.
__jsv_search() {
   __jsv_found=false
   __jsv_entry=
   __jsv_rest=
   __jsv_list=
   if __jsv_has param "$1"; then
      eval "__jsv_list=\$jsv_param_$1"
   fi
   while [ -n "$__jsv_list" ]; do
      __jsv_part=${__jsv_list%%,*}
      case $__jsv_list in
      *,*) __jsv_list=${__jsv_list#*,} ;;
      *) __jsv_list= ;;
      esac
      if [ "${__jsv_part%%=*}" = "$2" ]; then
         __jsv_found=true
         __jsv_entry=$__jsv_part
         __jsv_part=$3
      fi
      if [ -n "$__jsv_part" ]; then
         __jsv_rest="$__jsv_rest${__jsv_rest:+,}$__jsv_part"
      fi
   done
}

jsv_sub_is_param() {
   __jsv_search "$1" "$2" ""
   echo "$__jsv_found"
}

jsv_sub_get_param() {
   __jsv_search "$1" "$2" ""
   case $__jsv_entry in
   *=*) printf '%s\n' "${__jsv_entry#*=}" ;;
   esac
}

jsv_sub_add_param() {
   __jsv_new=$2${3:+=}$3
   __jsv_search "$1" "$2" "$__jsv_new"
   if [ "$__jsv_found" = false ]; then
      __jsv_rest="$__jsv_rest${__jsv_rest:+,}$__jsv_new"
   fi
   jsv_set_param "$1" "$__jsv_rest"
}

jsv_sub_del_param() {
   __jsv_search "$1" "$2" ""
   if [ "$__jsv_found" = true ]; then
      jsv_set_param "$1" "$__jsv_rest"
   fi
}

# The first result of a job counts.
__jsv_result() {
   if [ "$__jsv_state" = verifying ]; then
      __jsv_state=waiting
      jsv_send_command RESULT STATE "$@"
   fi
}

jsv_accept() { __jsv_result ACCEPT "$*"; }
jsv_correct() { __jsv_result CORRECT "$*"; }
jsv_reject() { __jsv_result REJECT "$*"; }
jsv_reject_wait() { __jsv_result REJECT_WAIT "$*"; }

# Takes a line NAME VALUE, the value as it stands. $1 is param or env.
__jsv_take() {
   __jsv_name=${2%% *}
   case $2 in
   *' '*) __jsv_keep "$1" "$__jsv_name" "${2#* }" ;;
   *) __jsv_keep "$1" "$__jsv_name" "" ;;
   esac
}

# Answers about one job after the other, until QUIT or the end of the input.
jsv_main() {
   while IFS= read -r __jsv_line; do
      __jsv_log "<<< $__jsv_line"
      case $__jsv_line in
      START)
         jsv_clear_params
         jsv_clear_envs
         __jsv_state=starting
         jsv_on_start
         jsv_send_command STARTED
         ;;
      'PARAM '*) __jsv_take param "${__jsv_line#PARAM }" ;;
      'ENV ADD '*) __jsv_take env "${__jsv_line#ENV ADD }" ;;
      BEGIN)
         __jsv_state=verifying
         jsv_on_verify
         __jsv_result REJECT "the verifier came to no result"
         ;;
      QUIT) return 0 ;;
      esac
   done
}
