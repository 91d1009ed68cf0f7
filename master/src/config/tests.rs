use super::*;

fn read(text: &str) -> Result<MasterConfig, String> {
    let dir = crate::testing::TempDir::new("config");
    let path = dir.path().join("master.toml");
    std::fs::write(&path, text).unwrap();
    let prefix = format!("{}/", dir.path().display());
    MasterConfig::read(&path).map_err(|error| error.to_string().replace(&prefix, ""))
}

#[test]
fn an_empty_file_and_the_written_documentation_mean_the_defaults() {
    let defaults = read("").unwrap();
    assert_eq!(defaults.input_queue, 4096);
    assert_eq!(read(&document("Master", MASTER_KEYS, &[])).unwrap(), defaults);
}

#[test]
fn a_value_that_is_set_is_written_and_read() {
    let text = document(
        "Master",
        MASTER_KEYS,
        &[("listen", "127.0.0.1".to_owned()), ("clients", "10".to_owned())],
    );
    let config = read(&text).unwrap();
    assert_eq!((config.listen.as_str(), config.clients), ("127.0.0.1", 10));
}

#[test]
fn what_is_wrong_is_refused_with_file_and_line() {
    for (text, expected) in [
        (
            "\nclient = 5\n",
            "master.toml:2: unknown key client; the keys of this file are listen",
        ),
        (
            "clients = 3\n",
            "master.toml:1: clients must be a number from 8 to 100000",
        ),
        ("listen = 5\n", "master.toml:1: listen must be a text in quotes"),
        ("# x\n\ntrim_log = 1", "master.toml:3: trim_log must be true or false"),
        ("listen = \"a\"\nclients =\n", "master.toml:2: "),
    ] {
        let message = read(text).unwrap_err();
        assert!(message.starts_with(expected), "{text:?} gave {message:?}");
    }
}

#[test]
fn a_cell_file_without_the_cell_is_refused() {
    let dir = crate::testing::TempDir::new("config");
    let path = dir.path().join("cell.toml");
    std::fs::write(&path, "port = 7000\n").unwrap();
    assert!(
        CellConfig::read(&path)
            .unwrap_err()
            .to_string()
            .ends_with("the key cell is missing")
    );
}
