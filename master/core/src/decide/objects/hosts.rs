//! Hosts and their certificates: tokens, joining, revoking, simulated hosts, and the end of daemons
//! (ARCHITECTURE.md "Transport and identity").

use super::{draft, words};
use crate::config::Configuration;
use crate::decide::hosts::agents;
use crate::decide::requests::RequestOrigin;
use crate::decide::{Caller, Turn, tasks};
use crate::effect::{Effect, ReplyTo};
use crate::event::{Event, JoinGrant, StoredObject};
use crate::observe::Observation;
use proto::amount::Type;
use proto::diagnostic::{Code, Diagnostic};
use proto::host::ExecHost;
use proto::host::names::{HostNames, KnownHosts};
use proto::hostgroup::{HostGroup, HostOrGroup, host_name};
use proto::id::{HostGroupName, HostName, TaskKey};
use proto::object::{Fields, ObjectKind};
use proto::restring::Expression;
use proto::time::Wall;
use proto::wire::agent::MasterMessage;
use proto::wire::client::{Answer, Reply};
use proto::wire::view::Data;

/// The group of all execution hosts, where a cell has one, as the installer of 8.1.9 makes it.
const ALL_HOSTS: &str = "@allhosts";

/// The group of the simulated hosts, inside [`ALL_HOSTS`].
const SIMULATED: &str = "@simulated";

/// The queue whose slots simulated hosts set.
const DEFAULT_QUEUE: &str = "all.q";

/// The most simulated hosts of a cell: more than the largest cells have real ones, and few enough
/// for one machine's ports.
const SIMULATED_MAX: u32 = 9_999;

/// The longest life of a token, in seconds: a year.
const TOKEN_LIFE_MAX_S: u64 = 365 * 86_400;

/// A host that asks to join.
#[derive(Clone, Debug)]
pub(crate) struct HostJoin {
    pub reply_to: ReplyTo,
    pub token_hash: String,
    pub host: HostName,
    pub serial: String,
    pub not_after: Wall,
}

/// Stores the hash of a token that the shell has made; the shell puts the token itself into the
/// answer.
pub(super) fn create_token(
    turn: &mut Turn<'_>,
    request: RequestOrigin,
    uses: u32,
    valid_s: u64,
    pattern: String,
) -> Reply {
    let refuse = |what: &str, fix: &str| Reply::refusal(Diagnostic::new(Code::BadValue, what).fix(fix));
    if uses == 0 {
        return refuse("a token that nobody may use", "allow at least one use");
    }
    if valid_s == 0 || valid_s > TOKEN_LIFE_MAX_S {
        return refuse(
            "a token lives from one second to a year",
            "name its life in seconds, such as 86400 for a day",
        );
    }
    let host_pattern = if pattern.is_empty() { "*".to_owned() } else { pattern };
    if let Err(error) = Expression::parse(&host_pattern) {
        let what = format!("\"{host_pattern}\" is no pattern of host names");
        let refusal = Diagnostic::new(Code::BadValue, what).why(error.to_string());
        return Reply::refusal(refusal.fix("write a name, or a pattern such as node*"));
    }
    let hash: String = request.entropy.iter().map(|byte| format!("{byte:02x}")).collect();
    let valid_ms = i64::try_from(valid_s.saturating_mul(1000)).unwrap_or(i64::MAX);
    let expires = Wall(turn.now.wall.0.saturating_add(valid_ms));
    turn.record(Event::TokenCreated(JoinGrant {
        hash: hash.clone(),
        uses_left: uses,
        expires,
        host_pattern,
    }));
    Reply::data(Data::Token(hash))
}

/// A token is no longer taken. It is named by the beginning of its hash.
pub(super) fn revoke_token(turn: &mut Turn<'_>, id: &str) -> Reply {
    let found: Vec<String> = turn
        .state()
        .tokens
        .keys()
        .filter(|hash| hash.starts_with(id))
        .cloned()
        .collect();
    let refuse = |what: String| {
        let refusal = Diagnostic::new(Code::UnknownObject, what);
        Reply::refusal(refusal.fix("gridwright token list shows the tokens that may be used, with their ids"))
    };
    match found.as_slice() {
        [] => refuse(format!("there is no token \"{id}\": it was used up, or never made")),
        [hash] if !id.is_empty() => {
            turn.record(Event::TokenRevoked { hash: hash.clone() });
            Reply::answers(vec![Answer::Done(format!("token {id} is revoked"))])
        }
        _ => refuse(format!("\"{id}\" is the beginning of {} tokens", found.len())),
    }
}

/// Admits a host that joins, and adds it to the execution hosts and to `@allhosts`, nowhere else.
pub(crate) fn join(turn: &mut Turn<'_>, join: HostJoin) {
    let HostJoin {
        reply_to,
        token_hash,
        host,
        serial,
        not_after,
    } = join;
    let outcome = may_join(turn, &token_hash, &host);
    if outcome.is_ok() {
        turn.record(Event::TokenUsed {
            hash: token_hash,
            host: host.clone(),
        });
        turn.record(Event::CertificateIssued {
            host: host.clone(),
            serial,
            not_after,
        });
        let objects = new_hosts(&turn.state().config, &[host], ALL_HOSTS);
        draft::commit(turn, objects);
    }
    turn.effect(Effect::Joined { to: reply_to, outcome });
}

fn may_join(turn: &Turn<'_>, token_hash: &str, host: &HostName) -> Result<(), Diagnostic> {
    let refuse = |what: &str| {
        let fix = "ask an administrator for a token: gridwright token create";
        Err(Diagnostic::new(Code::BadToken, what).fix(fix))
    };
    let state = turn.state();
    let Some(grant) = state.tokens.get(token_hash) else {
        return refuse("the token is not known here, or used up");
    };
    if grant.expires <= turn.now.wall {
        return refuse("the token has expired");
    }
    // A token may name a host by any of its names.
    let admitted = state
        .config
        .host_names(&turn.site().naming, host)
        .in_expression(&grant.host_pattern);
    if !Expression::parse(&admitted).is_ok_and(|pattern| pattern.matches(host.as_str(), Type::Host)) {
        return refuse(&format!(
            "the token is for hosts named {}, not for {host}",
            grant.host_pattern
        ));
    }
    let is_trusted = state.config.admin_hosts.contains(host) || state.config.submit_hosts.contains(host);
    if is_trusted && HostName::new(&admitted) != *host {
        // Whoever holds a token for any host would else come in under a name that others believe.
        let refusal = Diagnostic::new(
            Code::BadToken,
            format!("{host} is an administrative or submit host; this token is for any host"),
        );
        return Err(refusal.fix(format!("make a token for it alone: gridwright token --hosts {host}")));
    }
    if host.is_global() || host_name(host.as_str()).is_err() {
        let what = format!("\"{host}\" cannot be the name of a host");
        return Err(Diagnostic::new(Code::BadValue, what).fix("join under the name that hostname prints"));
    }
    if state
        .certificates
        .get(host)
        .is_some_and(|certificates| !certificates.is_empty())
    {
        let what = format!("host {host} has joined already");
        let refusal = Diagnostic::new(Code::AlreadyExists, what);
        return Err(refusal.fix(format!("if it was made anew, first: gridwright host revoke {host}")));
    }
    Ok(())
}

/// The objects of hosts that are new: themselves, and the group they are put into where there is
/// one.
fn new_hosts(config: &Configuration, hosts: &[HostName], group: &str) -> Vec<StoredObject> {
    let new: Vec<&HostName> = hosts
        .iter()
        .filter(|host| !config.exec_hosts.contains_key(*host))
        .collect();
    let stored = |kind, name: &str, fields: Fields| StoredObject {
        kind,
        name: name.to_owned(),
        fields: Some(fields),
    };
    let mut objects: Vec<StoredObject> = new
        .iter()
        .map(|host| {
            stored(
                ObjectKind::ExecHost,
                host.as_str(),
                ExecHost::template((*host).clone()).to_fields(),
            )
        })
        .collect();
    if let Some(old) = config.host_groups.get(group) {
        let mut changed = HostGroup::clone(old);
        let missing = new
            .iter()
            .map(|host| HostOrGroup::Host((*host).clone()))
            .filter(|host| !old.members.contains(host));
        changed.members.0.extend(missing);
        if changed != **old {
            objects.push(stored(ObjectKind::HostGroup, group, changed.to_fields()));
        }
    }
    objects
}

/// A host has a new certificate. One of a host that was revoked meanwhile stays without effect.
pub(crate) fn renewed(turn: &mut Turn<'_>, host: HostName, serial: String, not_after: Wall) {
    let state = turn.state();
    if state.certificates.contains_key(&host) || (is_simulated(&host) && state.config.exec_hosts.contains_key(&host)) {
        turn.record(Event::CertificateIssued {
            host,
            serial,
            not_after,
        });
    }
}

/// The certificates of a host are no longer admitted. Its object stays until it is deleted.
pub(super) fn revoke(turn: &mut Turn<'_>, caller: &Caller, host: &str) -> Reply {
    let state = turn.state();
    let known: Vec<&dyn KnownHosts> = vec![&state.certificates, &state.config.exec_hosts];
    let host = HostNames::new(known, &turn.site().naming, &caller.host).canonical(host);
    if !turn.state().certificates.contains_key(&host) {
        let what = format!("host {host} has no certificate of this cell");
        return Reply::refusal(Diagnostic::new(Code::UnknownObject, what).fix("qconf -sel lists the execution hosts"));
    }
    turn.record(Event::HostRevoked { host: host.clone() });
    let why = Diagnostic::new(Code::BadCertificate, format!("host {host} was revoked"));
    agents::disconnect(turn, &host, why.fix("let it join with a new token"));
    turn.effect(Effect::Revoked(host.clone()));
    Reply::answers(vec![Answer::Done(format!("host {host} is revoked"))])
}

/// The next agent of a host is let in whatever task directory it has. Tasks that it does not know
/// are lost then.
pub(super) fn rebind(turn: &mut Turn<'_>, caller: &Caller, host: &str) -> Reply {
    let state = turn.state();
    let known: Vec<&dyn KnownHosts> = vec![&state.certificates, &state.config.exec_hosts];
    let host = HostNames::new(known, &turn.site().naming, &caller.host).canonical(host);
    if !turn.state().task_marks.contains_key(&host) {
        let what = format!("host {host} is bound to no task directory");
        let fix = "nothing has to be done: its next agent is let in; qconf -sel lists the execution hosts";
        return Reply::refusal(Diagnostic::new(Code::UnknownObject, what).fix(fix));
    }
    turn.record(Event::HostTasksBound {
        host: host.clone(),
        mark: None,
    });
    Reply::answers(vec![Answer::Done(format!(
        "the next agent of host {host} is let in with the task directory it has"
    ))])
}

/// Adds hosts that exist on the master's machine alone. The shell answers, with their certificates.
pub(super) fn simulate(
    turn: &mut Turn<'_>,
    caller: &Caller,
    request: RequestOrigin,
    count: u32,
    slots: Option<u32>,
) -> Option<Reply> {
    if let Some(master) = turn
        .site()
        .master_host
        .as_ref()
        .filter(|master| **master != caller.host)
    {
        let what = format!("denied: simulated hosts run on the master's host, {master}");
        let why = format!("their certificates would go to {}", caller.host);
        let refusal = Diagnostic::new(Code::HostNotPermitted, what).why(why);
        return Some(Reply::refusal(
            refusal.fix(format!("on {master}: gridwright up --sim-hosts {count}")),
        ));
    }
    if count == 0 || count > SIMULATED_MAX {
        let what = format!("{count} simulated hosts");
        let refusal = Diagnostic::new(Code::BadValue, what).fix(format!("name a number from 1 to {SIMULATED_MAX}"));
        return Some(Reply::refusal(refusal));
    }
    let hosts: Vec<HostName> = (1..=count)
        .map(|number| HostName::new(&format!("sim{number:04}")))
        .collect();
    let config = &turn.state().config;
    let mut objects = simulated_group(config);
    let mut with_group = config.objects();
    objects.iter().for_each(|object| with_group.put(object));
    objects.extend(new_hosts(&with_group, &hosts, SIMULATED));
    objects.extend(slots.and_then(|slots| simulated_slots(config, slots)));
    draft::commit(turn, objects);
    turn.effect(Effect::IssueSimulated {
        to: request.reply_to,
        hosts,
    });
    None
}

fn is_simulated(host: &HostName) -> bool {
    host.as_str()
        .strip_prefix("sim")
        .is_some_and(|number| number.len() >= 4 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The group of simulated hosts inside the group of all hosts, as far as they are not there yet.
fn simulated_group(config: &Configuration) -> Vec<StoredObject> {
    let id = HostOrGroup::Group(HostGroupName::from(SIMULATED));
    let store = |group: HostGroup| StoredObject {
        kind: ObjectKind::HostGroup,
        name: group.name.to_string(),
        fields: Some(group.to_fields()),
    };
    let mut objects = Vec::new();
    if !config.host_groups.contains_key(SIMULATED) {
        objects.push(store(HostGroup::template(HostGroupName::from(SIMULATED))));
    }
    if let Some(all) = config
        .host_groups
        .get(ALL_HOSTS)
        .filter(|all| !all.members.contains(&id))
    {
        let mut all = HostGroup::clone(all);
        all.members.0.push(id);
        objects.push(store(all));
    }
    objects
}

/// `all.q` with other slots on simulated hosts, if there is such a queue.
fn simulated_slots(config: &Configuration, slots: u32) -> Option<StoredObject> {
    let mut queue = config.queues.get(DEFAULT_QUEUE).map(|queue| queue.as_ref().clone())?;
    let id = HostOrGroup::Group(HostGroupName::from(SIMULATED));
    queue.slots.overrides.retain(|(other, _)| *other != id);
    queue.slots.overrides.push((id, slots));
    Some(StoredObject {
        kind: ObjectKind::Queue,
        name: DEFAULT_QUEUE.to_owned(),
        fields: Some(queue.to_fields()),
    })
}

/// `-km`, `-ke`, `-kej`: ends the master, or the agents of hosts.
pub(super) fn shutdown(turn: &mut Turn<'_>, caller: &Caller, hosts: &[String], kill_jobs: bool) -> Reply {
    if hosts.is_empty() {
        turn.effect(Effect::Shutdown);
        return Reply::answers(vec![Answer::Done(format!("{} kills qmaster", caller.at_host()))]);
    }
    let names = turn.state().config.host_names(&turn.site().naming, &caller.host);
    let hosts: Vec<HostName> = hosts.iter().map(|host| names.canonical(host)).collect();
    Reply::answers(
        hosts
            .iter()
            .map(|host| shutdown_host(turn, caller, host, kill_jobs))
            .collect(),
    )
}

fn shutdown_host(turn: &mut Turn<'_>, caller: &Caller, host: &HostName, kill_jobs: bool) -> Answer {
    if !turn.state().config.exec_hosts.contains_key(host) {
        return Answer::Refused(words::absent(ObjectKind::ExecHost, host.as_str()));
    }
    let Some(connection) = turn.agents().connection(host) else {
        let what = format!("execution host \"{host}\" is not connected");
        return Answer::Refused(
            Diagnostic::new(Code::WrongState, what).why("its agent does not run, or cannot reach us"),
        );
    };
    if !kill_jobs {
        let keys: Vec<TaskKey> = turn.state().index.on_host(host).collect();
        keys.into_iter()
            .for_each(|key| tasks::migrate_at_shutdown(turn, host, key));
    }
    turn.send(connection, MasterMessage::Shutdown { kill_jobs });
    // It may wait for what moves; nothing new goes there from now on.
    let at = turn.now.tick;
    turn.observe(Observation::Contact {
        host: host.clone(),
        at,
        connected: false,
    });
    Answer::Done(format!("{} kills execd of host \"{host}\"", caller.at_host()))
}
