// Browsers start no worker for a page that was opened as a file. There, what searches
// runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><body></body>";
      this.scope = new Promise((resolve) => {
        frame.addEventListener("load", () => {
          const scope = frame.contentWindow;
          scope.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }));
          const script = scope.document.createElement("script");
          script.src = new URL(url, location.href).href;
          script.addEventListener("load", () => resolve(scope));
          scope.document.body.append(script);
        });
      });
      document.body.append(frame);
    }

    async postMessage(data) {
      const scope = await this.scope;
      scope.dispatchEvent(new scope.MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
