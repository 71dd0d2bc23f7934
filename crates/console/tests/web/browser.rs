//! What people do, in a real browser.

use serde_json::{Value, json};
use surefoot_console::Role;
use surefoot_kernel_core::RunState;

use crate::chrome::{Chrome, DARK, NARROW};
use crate::stage::{OPERATOR, Stage, claim, emit, finish, furnished, open_as, with_tokens};
use crate::world::{World, succeeded};

#[tokio::test]
async fn a_person_signs_in_and_out() {
    let stage = Stage::on(World::published().await, with_tokens());
    let chrome = Chrome::start(&stage.served(with_tokens()).await).await;
    chrome.open("/runs?state=failed").await;
    assert_eq!(chrome.address().await, "/sign-in?next=%2Fruns%3Fstate%3Dfailed");
    chrome.until("document.activeElement.id === 'token'").await;
    chrome.write("not-a-token-0123456789").await;
    chrome.press("Enter").await;
    chrome.until_shown("This token is not known here").await;
    chrome.click("#token").await;
    chrome.write(OPERATOR).await;
    chrome.press("Enter").await;
    chrome.until("location.pathname === '/runs'").await;
    assert_eq!(chrome.address().await, "/runs?state=failed");
    assert_eq!(chrome.eval("document.cookie").await, "", "a script reads the cookie");
    chrome.until("document.querySelector('#live-state').textContent === 'Live'").await;
    chrome.click(".who button").await;
    chrome.until("location.pathname === '/sign-in'").await;
    chrome.open("/audit").await;
    chrome.until("location.pathname === '/sign-in'").await;
    chrome.close().await;
}

/// Covers behaviour 183.
#[tokio::test]
async fn filters_stand_in_the_address_and_come_back_from_it() {
    let it = furnished(open_as(Role::Operator)).await;
    let chrome = Chrome::start(&it.stage.served(open_as(Role::Operator)).await).await;
    chrome.open("/runs").await;
    chrome.click("input[value=failed]").await;
    chrome.click("#workflow").await;
    chrome.write("reorder").await;
    chrome.click("#filter button").await;
    chrome.until("location.search.includes('state=failed')").await;
    let address = chrome.address().await;
    assert!(address.contains("workflow=reorder"), "{address}");
    assert_eq!(chrome.eval("document.querySelectorAll('#list tbody tr').length").await, 1);
    chrome.open(&address).await;
    let state = "[document.querySelector('input[value=failed]').checked, document.querySelector('#workflow').value]";
    assert_eq!(chrome.eval(state).await, json!([true, "reorder"]));
    chrome.click("#list tbody a.id").await;
    chrome.until("location.pathname.startsWith('/runs/run_')").await;
    chrome.eval("history.back()").await;
    chrome.until("location.search.includes('state=failed')").await;
    chrome.open("/no/such/view").await;
    assert_eq!(chrome.address().await, "/?unknown=page");
    chrome.open("/runs/run_malformed").await;
    assert_eq!(chrome.address().await, "/runs?unknown=page");
    chrome.close().await;
}

#[tokio::test]
async fn a_running_run_is_followed_without_loading_the_page_again() {
    let world = World::published().await;
    let run = emit(&world, "live").await;
    let mut drive = claim(&world, run).await;
    drive.to_call(&world.store).await.unwrap();
    let stage = Stage::on(world, open_as(Role::Operator));
    let world = &stage.world;
    let chrome = Chrome::start(&stage.served(open_as(Role::Operator)).await).await;
    chrome.open(&format!("/runs/{run}")).await;
    chrome.eval("window.stays = true").await;
    chrome.until("document.querySelector('#live-state').textContent === 'Live'").await;
    chrome.click("#deed-cancel summary").await;
    chrome.click("#cancel-reason").await;
    chrome.write("half a sentence").await;
    world.answered(&mut drive, "steps.0", succeeded(json!({}))).await;
    drive.to_call(&world.store).await.unwrap();
    chrome.until("document.querySelector('#steps').innerText.includes('steps.1')").await;
    chrome.until("document.querySelectorAll('.graph .t-good').length === 1").await;
    assert_eq!(
        chrome.eval("document.querySelector('#cancel-reason').value").await,
        "half a sentence"
    );
    world.answered(&mut drive, "steps.1", succeeded(json!({ "id": "r-1" }))).await;
    let rest = |call: &surefoot_kernel_core::Call| {
        surefoot_testkit::Reply::Answer(crate::stage::answer_to(&call.action))
    };
    drive.to_end(&world.store, rest).await.unwrap();
    chrome.until("document.querySelector('#top .state').textContent === 'succeeded'").await;
    chrome.until("document.title.startsWith('succeeded')").await;
    assert_eq!(chrome.eval("window.stays").await, Value::Bool(true), "the page was loaded again");
    chrome.close().await;
}

#[tokio::test]
async fn an_effect_is_settled_from_the_queue_to_the_end_of_its_run() {
    let it = furnished(open_as(Role::Operator)).await;
    let (world, run) = (&it.stage.world, it.unknown);
    let chrome = Chrome::start(&it.stage.served(open_as(Role::Operator)).await).await;
    chrome.open("/").await;
    chrome.click(".bar a[data-key=e]").await;
    chrome.until_shown("Effects to explain").await;
    chrome.click("#list .button").await;
    chrome.until_shown("Settle an effect").await;
    chrome.click("#deed-succeeded summary").await;
    chrome.click("#succeeded-json").await;
    chrome.write("{\"id\": 7}").await;
    chrome.click("#succeeded-reason").await;
    chrome.write("the bank's list has it").await;
    chrome.press("Enter").await;
    chrome.until_shown("does not fit the schema").await;
    let typed = "document.querySelector('#succeeded-reason').value";
    assert_eq!(chrome.eval(typed).await, "the bank's list has it");
    chrome.eval("document.querySelector('#succeeded-json').value = ''").await;
    chrome.click("#succeeded-json").await;
    chrome.write("{\"id\": \"r-1\"}").await;
    chrome.click("#deed-succeeded button").await;
    chrome.until_shown("Done.").await;
    let left = format!("!document.querySelector('#list').innerText.includes('{run}')");
    chrome.until(&left).await;
    chrome.open(&format!("/runs/{run}")).await;
    chrome.until("document.querySelector('#top .state').textContent === 'queued'").await;
    finish(world, run).await;
    chrome.until("document.querySelector('#top .state').textContent === 'succeeded'").await;
    chrome.open("/audit").await;
    chrome.until_shown("the bank's list has it").await;
    chrome.close().await;
}

#[tokio::test]
async fn a_run_is_canceled_with_the_keyboard_alone() {
    let it = furnished(open_as(Role::Operator)).await;
    let chrome = Chrome::start(&it.stage.served(open_as(Role::Operator)).await).await;
    chrome.open("/").await;
    chrome.press("Tab").await;
    assert_eq!(chrome.eval("document.activeElement.className").await, "skip");
    chrome.press("Enter").await;
    chrome.until("document.activeElement.id === 'main'").await;
    chrome.press("?").await;
    chrome.until("document.querySelector('.keys') !== null").await;
    chrome.press("Escape").await;
    chrome.press("g").await;
    chrome.press("r").await;
    chrome.until("location.pathname === '/runs'").await;
    chrome.press("/").await;
    chrome.until("document.activeElement.id === 'scope'").await;
    chrome.tab_to("input[value=waiting]").await;
    chrome.press(" ").await;
    chrome.press("Enter").await;
    chrome.until("location.search.includes('state=waiting')").await;
    chrome.press("j").await;
    chrome.until("document.activeElement.matches('#list a.id')").await;
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(chrome.eval(outline).await, "solid", "the focus is not seen");
    chrome.press("Enter").await;
    chrome.until("location.pathname.startsWith('/runs/run_')").await;
    chrome.tab_to("#deed-cancel summary").await;
    chrome.press("Enter").await;
    chrome.tab_to("#cancel-reason").await;
    chrome.write("ordered by mistake").await;
    chrome.press("Enter").await;
    chrome.until_shown("The run is canceled.").await;
    assert_eq!(it.stage.world.row(it.waiting).await.state(), RunState::Canceled);
    chrome.close().await;
}

/// Luminance of text against what is behind it, as WCAG asks.
const CONTRAST: &str = "(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data); };
  const light = ([r, g, b]) => { const part = (it) => { it /= 255; return it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const behind = (node) => { for (let it = node; it; it = it.parentElement) { const color = rgba(getComputedStyle(it).backgroundColor);
    if (color[3] > 250) return color; } return rgba('white'); };
  const low = [];
  for (const node of document.querySelectorAll('main *, header *, footer *')) {
    const own = Array.from(node.childNodes).some((it) => it.nodeType === 3 && it.textContent.trim());
    if (!own || node.closest('svg') || !node.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(node.tagName + '.' + node.className + ' ' + ratio.toFixed(2) + ' ' + node.textContent.slice(0, 30));
  }
  return low; })()";

/// Contrast in both palettes, names of controls, landmarks.
#[tokio::test]
async fn everybody_can_read_and_reach_every_page() {
    let it = furnished(open_as(Role::Operator)).await;
    let chrome = Chrome::start(&it.stage.served(open_as(Role::Operator)).await).await;
    for view in [DARK, NARROW] {
        chrome.view(view).await;
        for path in crate::looks::pages(&it).await {
            chrome.open(&path).await;
            let low = chrome.eval(CONTRAST).await;
            assert_eq!(low, json!([]), "{path}, dark: {}", view.is_dark);
            let nameless = "Array.from(document.querySelectorAll('a, button, summary, input:not([type=hidden]), select, textarea'))
                .filter((it) => !(it.textContent.trim() || it.labels?.length || it.getAttribute('aria-label'))).map((it) => it.outerHTML)";
            assert_eq!(chrome.eval(nameless).await, json!([]), "{path}");
            let marks = "['header', 'nav', 'main', 'footer', 'h1'].filter((it) => document.querySelectorAll(it).length < 1)";
            assert_eq!(chrome.eval(marks).await, json!([]), "{path}");
        }
    }
    let ground = "getComputedStyle(document.body).backgroundColor";
    chrome.view(NARROW).await;
    let light = chrome.eval(ground).await;
    chrome.view(DARK).await;
    assert_ne!(chrome.eval(ground).await, light, "dark looks like light");
    chrome.close().await;
}
