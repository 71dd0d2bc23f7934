//! A real Chromium, driven over the DevTools protocol through a pair of pipes: no port, no driver program.
//!
//! Everything that a browser can complain about is kept, and a test that ends with [`Chrome::close`] fails on it: errors
//! in the console, refusals of the content policy, and requests to any other host.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use surefoot_test_servers::{BROWSER_PROGRAM, programs};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;

/// Whatever a test waits for comes long before.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition inside the page.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// A browser with one page.
pub(crate) struct Chrome {
    child: Child,
    input: tokio::sync::Mutex<ChildStdin>,
    heard: Arc<Heard>,
    last: AtomicU64,
    session: String,
    base: String,
    _profile: tempfile::TempDir,
}

/// What the browser said.
#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<Value>>,
    is_new: Notify,
}

/// How the page is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_dark: bool,
}

pub(crate) const WIDE: View = View { width: 1280, height: 900, is_dark: false };
pub(crate) const DARK: View = View { is_dark: true, ..WIDE };
pub(crate) const NARROW: View = View { width: 400, height: 800, is_dark: false };

impl Chrome {
    /// Starts one, at an empty page. `base` is where the console is; nothing else may be asked for.
    pub(crate) async fn start(base: &str) -> Self {
        let program = programs(BROWSER_PROGRAM).unwrap_or_else(|_| "/usr/bin/chromium".into());
        assert!(
            program.is_file(),
            "there is no Chromium at {}: set {BROWSER_PROGRAM}, or use `cargo xtask test`",
            program.display()
        );
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("/bin/sh")
            // The protocol is spoken on the descriptors 3 and 4.
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-extensions"])
            .args(["--no-proxy-server", "--hide-scrollbars", "--force-prefers-reduced-motion"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = tokio::sync::Mutex::new(child.stdin.take().unwrap());
        let heard = Arc::new(Heard::default());
        drop(tokio::spawn(listen(child.stdout.take().unwrap(), Arc::clone(&heard))));
        let mut chrome = Self {
            child,
            input,
            heard,
            last: AtomicU64::new(0),
            session: String::new(),
            base: base.to_owned(),
            _profile: profile,
        };
        let target = chrome.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = chrome.call("Target.attachToTarget", attach).await;
        chrome.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log", "Audits"] {
            chrome.call(&format!("{domain}.enable"), json!({})).await;
        }
        chrome.view(WIDE).await;
        chrome
    }

    pub(crate) async fn view(&self, view: View) {
        let View { width, height, is_dark } = view;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// One command of the protocol, and its answer.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).await.unwrap_or_else(|why| panic!("{method}: {why}"))
    }

    async fn try_call(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.input.lock().await.write_all(&bytes).await.unwrap();
        let answer = self.hear(method, |it| it["id"] == id).await;
        match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// The first message that fits, also one that was heard before.
    async fn hear(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let is_new = self.heard.is_new.notified();
                let found = self.heard.messages.lock().unwrap().iter().find(|it| fits(it)).cloned();
                if let Some(found) = found {
                    return found;
                }
                is_new.await;
            }
        };
        let heard = tokio::time::timeout(PATIENCE, waiting).await;
        heard.unwrap_or_else(|_| panic!("the browser does not answer to {what}"))
    }

    fn events(&self, method: &str) -> Vec<Value> {
        let messages = self.heard.messages.lock().unwrap();
        messages.iter().filter(|it| it["method"] == method).map(|it| it["params"].clone()).collect()
    }

    /// Opens a page of the console, and waits until all of it is there.
    pub(crate) async fn open(&self, path: &str) {
        let before = self.events("Page.loadEventFired").len();
        let url = format!("{}{path}", self.base);
        self.call("Page.navigate", json!({ "url": url })).await;
        let waiting = async {
            while self.events("Page.loadEventFired").len() <= before {
                self.heard.is_new.notified().await;
            }
        };
        let loaded = tokio::time::timeout(PATIENCE, waiting).await;
        loaded.unwrap_or_else(|_| panic!("{path} is not loaded"));
    }

    /// What an expression is worth inside the page.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).await.unwrap_or_else(|why| panic!("`{expression}`: {why}"))
    }

    async fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.try_call("Runtime.evaluate", params).await?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(thrown.to_string()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true; a page that is being left, or is not all there, counts as not yet.
    pub(crate) async fn until(&self, expression: &str) {
        let expression = format!("document.readyState === 'complete' && ({expression})");
        let waiting = async {
            while self.try_eval(&expression).await != Ok(Value::Bool(true)) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let text = self.eval("document.body.innerText").await;
            panic!("`{expression}` never became true at {}:\n{text}", self.address().await);
        }
    }

    /// Waits until the page shows a text.
    pub(crate) async fn until_shown(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    pub(crate) async fn address(&self) -> String {
        let address = self.eval("location.pathname + location.search + location.hash").await;
        address.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks into the middle of an element, as a mouse does.
    pub(crate) async fn click(&self, selector: &str) {
        let place = format!(
            "(() => {{ const it = document.querySelector({}); it.scrollIntoView({{ block: 'center' }});
               const box = it.getBoundingClientRect();
               return [box.x + Math.min(box.width / 2, 60), box.y + Math.min(box.height / 2, 14)]; }})()",
            json!(selector)
        );
        let place = self.eval(&place).await;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Types into what has the focus.
    pub(crate) async fn write(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// Presses a key by its name, like `Tab`, `Enter` or `j`.
    pub(crate) async fn press(&self, key: &str) {
        let text = match key {
            "Enter" => Some("\r"),
            " " => Some(" "),
            _ if key.chars().count() == 1 => Some(key),
            _ => None,
        };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            _ => key.bytes().next().map_or(0, |byte| byte.to_ascii_uppercase()),
        };
        let mut down = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        if let Some(text) = text {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down).await;
        let up = json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", up).await;
    }

    /// Goes on with the tabulator until a fitting element has the focus.
    pub(crate) async fn tab_to(&self, selector: &str) {
        let is_there = format!("document.activeElement.matches({})", json!(selector));
        for _ in 0..200 {
            if self.eval(&is_there).await == Value::Bool(true) {
                return;
            }
            self.press("Tab").await;
        }
        panic!("the tabulator does not lead to `{selector}`");
    }

    /// A picture of the whole page, as a PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", params).await;
        let text = answer["data"].as_str().unwrap();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    /// Fails if the browser had anything to complain about.
    pub(crate) fn check(&self) {
        for request in self.events("Network.requestWillBeSent") {
            let url = request["request"]["url"].as_str().unwrap_or_default().to_owned();
            let is_ours = url.starts_with(&self.base) || url == "about:blank";
            assert!(is_ours, "the page asks another host: {url}");
        }
        for answer in self.events("Network.responseReceived") {
            let (url, status) = (&answer["response"]["url"], &answer["response"]["status"]);
            let is_live = url.as_str().is_some_and(|url| url.contains("/api/"));
            assert!(!is_live || status == 200, "{url} is answered with {status}");
        }
        let thrown = self.events("Runtime.exceptionThrown");
        assert!(thrown.is_empty(), "{thrown:?}");
        let said = self.events("Runtime.consoleAPICalled");
        assert!(said.is_empty(), "{said:?}");
        let is_refusal = |it: &&Value| {
            // A form that was refused is answered with a page and a status that says so.
            let text = it["entry"]["text"].as_str().unwrap_or_default();
            let is_advice = it["entry"]["level"] == "verbose";
            !is_advice && !text.contains("the server responded with a status of")
        };
        let logged = self.events("Log.entryAdded");
        let logged: Vec<&Value> = logged.iter().filter(is_refusal).collect();
        assert!(logged.is_empty(), "{logged:?}");
        let is_policy = |it: &&Value| it["issue"]["code"] == "ContentSecurityPolicyIssue";
        let issues = self.events("Audits.issueAdded");
        let refused: Vec<&Value> = issues.iter().filter(is_policy).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }

    /// Ends it, and fails if it had anything to complain about.
    pub(crate) async fn close(mut self) {
        self.check();
        let _ = self.child.kill().await;
    }
}

async fn listen(output: ChildStdout, heard: Arc<Heard>) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    while output.read_until(0, &mut bytes).await.is_ok_and(|count| count > 0) {
        bytes.pop();
        if let Ok(message) = serde_json::from_slice(&bytes) {
            heard.messages.lock().unwrap().push(message);
            heard.is_new.notify_waiters();
        }
        bytes.clear();
    }
}
