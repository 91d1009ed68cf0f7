# Job submission verifiers in Perl: use this module, pass functions to jsv_on_start and
# jsv_on_verify, and call jsv_main. See jsv(5).
package JSV;

use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(
   jsv_on_start jsv_on_verify jsv_main jsv_get_param_hash
   jsv_accept jsv_correct jsv_reject jsv_reject_wait
   jsv_clear_params jsv_clear_envs jsv_show_params jsv_show_envs
   jsv_is_param jsv_get_param jsv_set_param jsv_del_param
   jsv_sub_is_param jsv_sub_get_param jsv_sub_add_param jsv_sub_del_param
   jsv_is_env jsv_get_env jsv_add_env jsv_mod_env jsv_del_env
   jsv_send_env jsv_log_info jsv_log_warning jsv_log_error jsv_send_command
);
our @EXPORT_OK = @EXPORT;
our %EXPORT_TAGS = (ALL => \@EXPORT);
our $VERSION = '1.0';

# Parameters that are lists: in the hash of parameters they are hashes.
my %is_list = map { $_ => 1 } qw(
   ac hold_jid hold_jid_ad l_hard l_soft M masterq q_hard q_soft
   master_l_hard slave_l_hard slave_q_hard
);

my ($on_start, $on_verify) = (sub { }, sub { });
my (%param, %env, @param_names, @env_names);
my $state = 'waiting';

sub jsv_on_start { $on_start = shift; return }
sub jsv_on_verify { $on_verify = shift; return }

# Says one line of the protocol.
sub jsv_send_command {
   my $line = join(' ', map { defined $_ ? $_ : '' } @_);
   $line =~ s/\n/\\n/g;
   print STDOUT "$line\n";
   return;
}

sub jsv_log_info { jsv_send_command('LOG', 'INFO', @_); return }
sub jsv_log_warning { jsv_send_command('LOG', 'WARNING', @_); return }
sub jsv_log_error { jsv_send_command('LOG', 'ERROR', @_); return }

# In jsv_on_start: wants the environment of the next job.
sub jsv_send_env {
   if ($state eq 'starting') {
      jsv_send_command('SEND', 'ENV');
   } else {
      jsv_log_error('jsv_send_env is for jsv_on_start alone');
   }
   return;
}

sub jsv_clear_params { %param = (); @param_names = (); return }
sub jsv_clear_envs { %env = (); @env_names = (); return }

sub jsv_show_params {
   jsv_log_info("got param $_=$param{$_}") for grep { exists $param{$_} } @param_names;
   return;
}

sub jsv_show_envs {
   jsv_log_info("got env $_=$env{$_}") for grep { exists $env{$_} } @env_names;
   return;
}

sub _keep_param {
   my ($name, $value) = @_;
   push @param_names, $name unless grep { $_ eq $name } @param_names;
   $param{$name} = $value;
   return;
}

sub _keep_env {
   my ($name, $value) = @_;
   push @env_names, $name unless exists $env{$name};
   $env{$name} = $value;
   return;
}

sub jsv_is_param { return exists $param{ $_[0] } ? 1 : 0 }
sub jsv_get_param { return exists $param{ $_[0] } ? $param{ $_[0] } : '' }

sub jsv_set_param {
   my ($name, $value) = @_;
   if (!defined $value || $value eq '') {
      delete $param{$name};
      jsv_send_command('PARAM', $name);
   } else {
      _keep_param($name, $value);
      jsv_send_command('PARAM', $name, $value);
   }
   return;
}

sub jsv_del_param {
   my ($name) = @_;
   jsv_set_param($name, '') if exists $param{$name};
   return;
}

sub jsv_is_env { return exists $env{ $_[0] } ? 1 : 0 }
sub jsv_get_env { return exists $env{ $_[0] } ? $env{ $_[0] } : '' }

sub jsv_add_env {
   my ($name, $value) = @_;
   $value = '' unless defined $value;
   _keep_env($name, $value);
   jsv_send_command('ENV', 'ADD', $name, $value);
   return;
}

sub jsv_mod_env {
   my ($name, $value) = @_;
   $value = '' unless defined $value;
   _keep_env($name, $value);
   jsv_send_command('ENV', 'MOD', $name, $value);
   return;
}

sub jsv_del_env {
   my ($name) = @_;
   if (exists $env{$name}) {
      delete $env{$name};
      jsv_send_command('ENV', 'DEL', $name);
   }
   return;
}

# The entries of a list as pairs of name and value, which is undefined where there is no "=".
sub _entries {
   my ($name) = @_;
   return map { my ($key, $value) = split /=/, $_, 2; [ $key, $value ] }
      grep { $_ ne '' } split /,/, jsv_get_param($name);
}

sub _set_entries {
   my ($name, @entries) = @_;
   jsv_set_param($name, join(',', map { defined $_->[1] && $_->[1] ne '' ? "$_->[0]=$_->[1]" : $_->[0] } @entries));
   return;
}

sub jsv_sub_is_param {
   my ($name, $key) = @_;
   return (grep { $_->[0] eq $key } _entries($name)) ? 1 : 0;
}

sub jsv_sub_get_param {
   my ($name, $key) = @_;
   my ($entry) = grep { $_->[0] eq $key } _entries($name);
   return defined $entry && defined $entry->[1] ? $entry->[1] : '';
}

# "NAME=VALUE" in one piece is taken as well.
sub jsv_sub_add_param {
   my ($name, $key, $value) = @_;
   ($key, $value) = split /=/, $key, 2 if !defined $value && $key =~ /=/;
   my @entries = _entries($name);
   my ($known) = grep { $_->[0] eq $key } @entries;
   if (defined $known) {
      $known->[1] = $value;
   } else {
      push @entries, [ $key, $value ];
   }
   _set_entries($name, @entries);
   return;
}

sub jsv_sub_del_param {
   my ($name, $key) = @_;
   my @entries = _entries($name);
   my @rest = grep { $_->[0] ne $key } @entries;
   _set_entries($name, @rest) if @rest < @entries;
   return;
}

# All parameters. A list is a hash of its entries.
sub jsv_get_param_hash {
   my %all = %param;
   for my $name (grep { $is_list{$_} } keys %all) {
      $all{$name} = { map { ($_->[0] => $_->[1]) } _entries($name) };
   }
   return %all;
}

# The first result of a job counts.
sub _result {
   if ($state eq 'verifying') {
      $state = 'waiting';
      jsv_send_command('RESULT', 'STATE', @_);
   }
   return;
}

sub jsv_accept { _result('ACCEPT', @_); return }
sub jsv_correct { _result('CORRECT', @_); return }
sub jsv_reject { _result('REJECT', @_); return }
sub jsv_reject_wait { _result('REJECT_WAIT', @_); return }

# Answers about one job after the other, until QUIT or the end of the input.
sub jsv_main {
   local $| = 1;
   while (my $line = <STDIN>) {
      chomp $line;
      if ($line eq 'START') {
         jsv_clear_params();
         jsv_clear_envs();
         $state = 'starting';
         $on_start->();
         jsv_send_command('STARTED');
      } elsif ($line =~ /^PARAM (\S+) ?(.*)$/s) {
         _keep_param($1, $2);
      } elsif ($line =~ /^ENV ADD (\S+) ?(.*)$/s) {
         _keep_env($1, $2);
      } elsif ($line eq 'BEGIN') {
         $state = 'verifying';
         $on_verify->();
         _result('REJECT', 'the verifier came to no result');
      } elsif ($line eq 'QUIT') {
         return;
      }
   }
   return;
}

1;
