//! A real Chromium, driven over the DevTools protocol through a pair of pipes (`--remote-debugging-pipe`): it reads
//! messages from descriptor 3 and writes its own to descriptor 4, each ended by a zero byte.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No answer of a browser takes longer, however busy the machine is.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Names under which a Chromium may be installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// What a window is set to before a page is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

/// A window as wide as a desktop's.
pub(crate) const DESKTOP: Window = Window { width: 1280, height: 900, dark: false };
/// A window as wide as a small phone's.
pub(crate) const PHONE: Window = Window { width: 360, height: 740, dark: false };

/// Resolves when what was changed before is on the screen, where gestures find it.
const DRAWN: &str =
    "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))";

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    events: VecDeque<Value>,
    folder: tempfile::TempDir,
}

impl Browser {
    /// Starts one; `None`, said on standard error, where there is none. Under `CI=true` that is a failure.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = NAMES.iter().find_map(model::file_on_path) else {
            assert!(
                std::env::var_os("CI").is_none_or(|value| value != "true"),
                "no Chromium here (apt-get install chromium)"
            );
            eprintln!("SKIPPED: no Chromium here (apt-get install chromium)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("page-").tempdir().expect("a folder for the browser");
        // A shell moves the pipes to where the browser looks for them, and becomes the browser.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let (to, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let message = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                let Some(message) = message else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, to, from, session: None, calls: 0, events: VecDeque::new(), folder };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let targets = self.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().expect("a list").clone();
        let page = targets.iter().find(|target| target["type"] == "page").expect("a page");
        let attached =
            self.call("Target.attachToTarget", json!({"targetId": page["targetId"], "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            self.call(domain, json!({}));
        }
    }

    /// A folder that is gone when the browser is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends a command and gives its result; events that arrive before it are kept.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let message =
                self.from.recv_timeout(ANSWERS_WITHIN).unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == json!(self.calls) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    /// Opens a file and waits until it is loaded and drawn.
    pub(crate) fn open(&mut self, file: &Path, window: Window) {
        self.set(window);
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        self.wait_for("Page.loadEventFired");
        self.evaluate(DRAWN);
    }

    /// How much processor time all processes of the browser together used while a file was opened.
    pub(crate) fn processor_time_to_open(&mut self, file: &Path, window: Window) -> Duration {
        let before = self.processor_times();
        self.open(file, window);
        let used = |(process, seconds): (u64, f64)| seconds - before.get(&process).copied().unwrap_or(0.0);
        Duration::from_secs_f64(self.processor_times().into_iter().map(used).sum())
    }

    /// The seconds of processor time that each process of the browser has used, by its number.
    fn processor_times(&mut self) -> HashMap<u64, f64> {
        // A page is refused this; the browser is not.
        let session = self.session.take();
        let answer = self.call("SystemInfo.getProcessInfo", json!({}));
        self.session = session;
        let used = |process: &Value| Some((process["id"].as_u64()?, process["cpuTime"].as_f64()?));
        let processes = answer["processInfo"].as_array().expect("a list");
        processes.iter().map(|process| used(process).unwrap_or_else(|| panic!("{process}"))).collect()
    }

    /// Sets the window's size and the reader's theme.
    pub(crate) fn set(&mut self, window: Window) {
        let Window { width, height, dark } = window;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let theme = json!([{"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": theme}));
    }

    fn wait_for(&mut self, event: &str) {
        let deadline = Instant::now() + ANSWERS_WITHIN;
        while !self.events.iter().any(|known| known["method"] == event) {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.from.recv_timeout(left).unwrap_or_else(|error| panic!("{event}: {error}"));
            self.events.push_back(message);
        }
    }

    /// What an expression of the page's language gives; a promise is waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The same as a text.
    pub(crate) fn text(&mut self, expression: &str) -> String {
        match self.evaluate(expression) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// Everything that was complained of since the page was opened: exceptions, the console, the log.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| {
            let method = event["method"].as_str().unwrap_or_default();
            ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"].contains(&method)
        };
        self.events.iter().filter(is_complaint).map(Value::to_string).collect()
    }

    /// The addresses of all requests since the page was opened.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| event["params"]["request"]["url"].as_str()).map(str::to_owned).collect()
    }

    /// Scrolls an element into the middle of the window, and tells where it lies: left, top, width, height.
    pub(crate) fn place(&mut self, selector: &str) -> [f64; 4] {
        let script = format!(
            "(async () => {{ const it = document.querySelector({selector:?}); \
             it.scrollIntoView({{block: 'center', behavior: 'instant'}}); await {DRAWN}; \
             const box = it.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }})()"
        );
        let numbers = self.evaluate(&script);
        std::array::from_fn(|at| numbers[at].as_f64().unwrap_or_else(|| panic!("{selector}: {numbers}")))
    }

    /// A mouse event at a place in the window.
    pub(crate) fn mouse(&mut self, what: &str, (x, y): (f64, f64)) {
        let clicks = u8::from(what != "mouseMoved");
        let button = if what == "mouseMoved" { "none" } else { "left" };
        let event = json!({"type": what, "x": x, "y": y, "button": button, "clickCount": clicks});
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Points at the middle of an element.
    pub(crate) fn point_at(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        self.mouse("mouseMoved", (left + width / 2.0, top + height / 2.0));
    }

    /// Clicks on the middle of an element.
    pub(crate) fn click(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        let middle = (left + width / 2.0, top + height / 2.0);
        for what in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(what, middle);
        }
    }

    /// Presses a key, by its name.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        for what in ["keyDown", "keyUp"] {
            let mut event = json!({"type": what, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if what == "keyDown" && key == "Enter" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Lets downloads go to a folder, and waits for one of this name.
    pub(crate) fn download(&mut self, name: &str, start: impl FnOnce(&mut Self)) -> String {
        let folder = self.folder().join("downloads");
        fs::create_dir_all(&folder).expect("a folder");
        let parameters = json!({"behavior": "allow", "downloadPath": folder.display().to_string()});
        self.call("Page.setDownloadBehavior", parameters);
        start(self);
        let deadline = Instant::now() + ANSWERS_WITHIN;
        loop {
            match fs::read_to_string(folder.join(name)) {
                Ok(text) if !text.is_empty() => return text,
                _ => assert!(Instant::now() < deadline, "no download of {name}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Browser {
    /// Asks it to go, which ends its helpers too; insists where it does not.
    fn drop(&mut self) {
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
