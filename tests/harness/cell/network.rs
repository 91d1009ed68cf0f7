//! Several hosts on this machine: network namespaces on one bridge, each with a host name of its
//! own. Root only.

use super::account::Account;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Hosts that reach each other by name. Dropped, they are gone.
#[derive(Debug)]
pub struct Network {
    prefix: String,
    hosts: Vec<String>,
}

impl Network {
    /// A network of hosts with these names.
    ///
    /// # Panics
    /// If the system refuses it.
    pub fn with_hosts(hosts: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("gw{}n{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let network = Self {
            prefix,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        };
        let switch = network.switch();
        ip(&format!("netns add {switch}"));
        ip(&format!("-n {switch} link add br0 type bridge"));
        ip(&format!("-n {switch} link set br0 up"));
        for (n, host) in hosts.iter().enumerate() {
            network.add(n, host);
        }
        network
    }

    fn add(&self, n: usize, host: &str) {
        let (switch, space) = (self.switch(), self.space(host));
        ip(&format!("netns add {space}"));
        ip(&format!(
            "-n {switch} link add port{n} type veth peer name eth0 netns {space}"
        ));
        ip(&format!("-n {switch} link set port{n} master br0 up"));
        ip(&format!("-n {space} addr add {}/24 dev eth0", address(n)));
        ip(&format!("-n {space} link set eth0 up"));
        ip(&format!("-n {space} link set lo up"));
        let etc = self.etc(host);
        let names = self
            .hosts
            .iter()
            .enumerate()
            .map(|(n, host)| format!("{} {host}\n", address(n)));
        std::fs::create_dir_all(&etc).expect("root may write below /etc");
        std::fs::write(
            etc.join("hosts"),
            format!("127.0.0.1 localhost\n{}", names.collect::<String>()),
        )
        .expect("root may write below /etc");
    }

    /// Lays a file over `/etc/NAME` of a host, for what is started there from now on.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn lay_over_etc(&self, host: &str, name: &str, text: &str) {
        std::fs::write(self.etc(host).join(name), text).expect("root may write below /etc");
    }

    /// A command on a host, under an account where one is named.
    pub(super) fn command(&self, host: &str, account: Option<&Account>, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host), "unshare", "--uts", "sh", "-c"]);
        command.args(["echo \"$0\" >/proc/sys/kernel/hostname && exec \"$@\"", host]);
        if let Some(account) = account.filter(|account| account.is_made()) {
            let (uid, gid) = (format!("--reuid={}", account.uid), format!("--regid={}", account.gid));
            command.args(["setpriv", &uid, &gid, "--clear-groups"]);
        }
        command.arg(program);
        command
    }

    /// Takes a host off the network: everything to and from it is lost.
    pub fn cut(&self, host: &str) {
        self.port(host, "down");
    }

    /// Puts it back.
    pub fn heal(&self, host: &str) {
        self.port(host, "up");
    }

    /// Drops what comes to a UDP port of a host, as a firewall there would.
    pub fn block_udp(&self, host: &str, port: u16) {
        let rule = format!("add rule inet gw in udp dport {port} drop");
        for words in [
            "add table inet gw",
            "add chain inet gw in { type filter hook input priority 0 ; }",
            &rule,
        ] {
            self.nft(host, words);
        }
    }

    /// Takes that back.
    pub fn unblock(&self, host: &str) {
        self.nft(host, "delete table inet gw");
    }

    /// Gives a host a file of its own in `/etc`, as `ip netns exec` lays it over.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn overlay(&self, host: &str, name: &str, text: &str) {
        std::fs::write(self.etc(host).join(name), text).expect("root may write below /etc");
    }

    fn nft(&self, host: &str, words: &str) {
        ip(&format!("netns exec {} nft {words}", self.space(host)));
    }

    fn port(&self, host: &str, state: &str) {
        let n = self
            .hosts
            .iter()
            .position(|known| known == host)
            .expect("the host is one of this network");
        ip(&format!("-n {} link set port{n} {state}", self.switch()));
    }

    fn switch(&self) -> String {
        format!("{}switch", self.prefix)
    }

    fn space(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    fn etc(&self, host: &str) -> PathBuf {
        Path::new("/etc/netns").join(self.space(host))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in self.hosts.iter().map(|host| self.space(host)).chain([self.switch()]) {
            let _ = Command::new("ip").args(["netns", "del", &space]).output();
        }
        for host in &self.hosts {
            let _ = std::fs::remove_dir_all(self.etc(host));
        }
        // Goes only when nobody else has something there.
        let _ = std::fs::remove_dir("/etc/netns");
    }
}

fn address(n: usize) -> String {
    format!("10.77.0.{}", n + 1)
}

fn ip(words: &str) {
    let output = Command::new("ip")
        .args(words.split(' '))
        .output()
        .unwrap_or_else(|error| panic!("ip: {error}"));
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
