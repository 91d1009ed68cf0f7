# Job submission verifiers in Tcl: source this file, define jsv_on_start and jsv_on_verify, and call
# jsv_main. The functions are those of jsv_include.sh, and answer 1 and 0. See jsv(5).

array set jsv_params {}
array set jsv_envs {}
set jsv_param_names {}
set jsv_env_names {}
set jsv_state waiting

fconfigure stdin -encoding binary -translation lf
fconfigure stdout -encoding binary -translation lf -buffering line

# Says one line of the protocol.
proc jsv_send_command {args} {
   puts stdout [join $args " "]
}

proc jsv_log_info {args} { jsv_send_command LOG INFO [join $args " "] }
proc jsv_log_warning {args} { jsv_send_command LOG WARNING [join $args " "] }
proc jsv_log_error {args} { jsv_send_command LOG ERROR [join $args " "] }

# In jsv_on_start: wants the environment of the next job.
proc jsv_send_env {} {
   if {$::jsv_state eq "starting"} {
      jsv_send_command SEND ENV
   } else {
      jsv_log_error "jsv_send_env is for jsv_on_start alone"
   }
}

# Keeps a value. kind is param or env.
proc _jsv_keep {kind name value} {
   upvar #0 jsv_${kind}s values jsv_${kind}_names names
   if {![info exists values($name)]} {
      lappend names $name
   }
   set values($name) $value
}

proc _jsv_drop {kind name} {
   upvar #0 jsv_${kind}s values jsv_${kind}_names names
   unset -nocomplain values($name)
   set names [lsearch -all -inline -exact -not $names $name]
}

proc _jsv_get {kind name} {
   upvar #0 jsv_${kind}s values
   if {[info exists values($name)]} {
      return $values($name)
   }
   return ""
}

proc _jsv_clear {kind} {
   upvar #0 jsv_${kind}s values jsv_${kind}_names names
   array unset values
   set names {}
}

proc _jsv_show {kind} {
   upvar #0 jsv_${kind}s values jsv_${kind}_names names
   foreach name $names {
      jsv_log_info "got $kind $name=$values($name)"
   }
}

proc jsv_clear_params {} { _jsv_clear param }
proc jsv_clear_envs {} { _jsv_clear env }
proc jsv_show_params {} { _jsv_show param }
proc jsv_show_envs {} { _jsv_show env }

proc jsv_is_param {name} { return [info exists ::jsv_params($name)] }
proc jsv_get_param {name} { return [_jsv_get param $name] }

proc jsv_set_param {name value} {
   if {$value eq ""} {
      _jsv_drop param $name
      jsv_send_command PARAM $name
   } else {
      _jsv_keep param $name $value
      jsv_send_command PARAM $name $value
   }
}

proc jsv_del_param {name} {
   if {[jsv_is_param $name]} {
      jsv_set_param $name ""
   }
}

proc jsv_is_env {name} { return [info exists ::jsv_envs($name)] }
proc jsv_get_env {name} { return [_jsv_get env $name] }

proc jsv_add_env {name {value ""}} {
   _jsv_keep env $name $value
   jsv_send_command ENV ADD $name $value
}

proc jsv_mod_env {name {value ""}} {
   _jsv_keep env $name $value
   jsv_send_command ENV MOD $name $value
}

proc jsv_del_env {name} {
   if {[jsv_is_env $name]} {
      _jsv_drop env $name
      jsv_send_command ENV DEL $name
   }
}

# The entries of a list as a flat list of names and entries.
proc _jsv_entries {param} {
   set entries {}
   foreach entry [split [jsv_get_param $param] ","] {
      if {$entry ne ""} {
         lappend entries [lindex [split $entry "="] 0] $entry
      }
   }
   return $entries
}

proc jsv_sub_is_param {param name} {
   foreach {known entry} [_jsv_entries $param] {
      if {$known eq $name} {
         return 1
      }
   }
   return 0
}

proc jsv_sub_get_param {param name} {
   set value ""
   foreach {known entry} [_jsv_entries $param] {
      if {$known eq $name} {
         set value [string range $entry [expr {[string length $name] + 1}] end]
      }
   }
   return $value
}

proc jsv_sub_add_param {param name {value ""}} {
   set new $name
   if {$value ne ""} {
      append new "=" $value
   }
   set rest {}
   set found 0
   foreach {known entry} [_jsv_entries $param] {
      if {$known eq $name} {
         set entry $new
         set found 1
      }
      lappend rest $entry
   }
   if {!$found} {
      lappend rest $new
   }
   jsv_set_param $param [join $rest ","]
}

proc jsv_sub_del_param {param name} {
   if {![jsv_sub_is_param $param $name]} {
      return
   }
   set rest {}
   foreach {known entry} [_jsv_entries $param] {
      if {$known ne $name} {
         lappend rest $entry
      }
   }
   jsv_set_param $param [join $rest ","]
}

# The first result of a job counts.
proc _jsv_result {state message} {
   if {$::jsv_state eq "verifying"} {
      set ::jsv_state waiting
      jsv_send_command RESULT STATE $state $message
   }
}

proc jsv_accept {args} { _jsv_result ACCEPT [join $args " "] }
proc jsv_correct {args} { _jsv_result CORRECT [join $args " "] }
proc jsv_reject {args} { _jsv_result REJECT [join $args " "] }
proc jsv_reject_wait {args} { _jsv_result REJECT_WAIT [join $args " "] }

# Answers about one job after the other, until QUIT or the end of the input.
proc jsv_main {} {
   while {[gets stdin line] >= 0} {
      if {$line eq "START"} {
         jsv_clear_params
         jsv_clear_envs
         set ::jsv_state starting
         jsv_on_start
         jsv_send_command STARTED
      } elseif {[regexp {^PARAM ([^ ]+) ?(.*)$} $line all name value]} {
         _jsv_keep param $name $value
      } elseif {[regexp {^ENV ADD ([^ ]+) ?(.*)$} $line all name value]} {
         _jsv_keep env $name $value
      } elseif {$line eq "BEGIN"} {
         set ::jsv_state verifying
         jsv_on_verify
         _jsv_result REJECT "the verifier came to no result"
      } elseif {$line eq "QUIT"} {
         return
      }
   }
}
