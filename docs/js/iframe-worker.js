// Pages that are opened from a disk may start no worker: there, the search runs in a hidden frame.
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  const PRELUDE = "postMessage = (data) => frameElement.tell(data); importScripts = () => {};";

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.tell = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const source = String(address).replace(/&/g, "&amp;").replace(/"/g, "&quot;");
      frame.srcdoc = "<script>" + PRELUDE + "<" + "/script>" +
        '<script src="' + source + '"><' + "/script>";
      this.started = new Promise((resolve) => { frame.onload = () => resolve(frame.contentWindow); });
      document.body.append(frame);
    }

    postMessage(data) {
      this.started.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  };
})();
