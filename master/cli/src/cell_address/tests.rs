use super::*;
use std::os::unix::net::UnixListener;

/// The directory of a cell in which daemons listen as told; gone with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-site-{name}-{}", std::process::id()));
        for daemon in ["master", "agent"] {
            std::fs::create_dir_all(dir.join("run").join(daemon)).unwrap();
        }
        std::fs::create_dir_all(dir.join("etc")).unwrap();
        Self(dir)
    }

    /// The same on the machine of the master.
    fn of_master(name: &str) -> Self {
        let dir = Self::new(name);
        std::fs::write(dir.0.join("etc/master.toml"), "").unwrap();
        dir
    }

    fn listen(&self, daemon: &str) -> UnixListener {
        UnixListener::bind(self.0.join("run").join(daemon).join(format!("{daemon}.sock"))).unwrap()
    }

    fn site(&self) -> CellAddress {
        CellAddress::at(&self.0)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn beside_a_dead_master_its_agent_is_not_asked() {
    let dir = Dir::of_master("dead");
    let _agent = dir.listen("agent");
    drop(dir.listen("master"));
    let refusal = dir.site().connect(Duration::ZERO).unwrap_err();
    assert_eq!(refusal.code, Code::NoMaster);
    let told = refusal.to_string();
    let wanted = [
        "error: unable to send message to qmaster",
        "run/master/master.sock",
        "start it: gridwright up --dir",
    ];
    assert!(wanted.iter().all(|word| told.contains(word)), "{told}");
}

#[test]
fn a_master_that_comes_back_is_waited_for() {
    let dir = Dir::of_master("back");
    let _agent = dir.listen("agent");
    let mut master = None;
    let connected = dir.site().connect_while(|| {
        master.get_or_insert_with(|| dir.listen("master"));
        true
    });
    connected.unwrap();
    master.expect("it was away at first").accept().unwrap();
}

#[test]
fn where_there_is_an_agent_alone_it_passes_commands_on() {
    let dir = Dir::new("joined");
    let agent = dir.listen("agent");
    dir.site().connect(Duration::ZERO).unwrap();
    agent.accept().unwrap();
}

#[test]
fn nothing_is_waited_for_where_the_whole_cell_is_down() {
    let dir = Dir::of_master("down");
    let refusal = dir
        .site()
        .connect_while(|| panic!("there is nothing to wait for"))
        .unwrap_err();
    assert!(refusal.to_string().contains("no daemon answers"), "{refusal}");
}
