package console

import (
	"crypto/sha512"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"

	"github.com/callgate/callgate/refusal"
)

// New returns a console. Its error is one of the files in this binary.
func New(o Options) (*Console, error) {
	c := &Console{options: o, mux: http.NewServeMux(), pages: map[string]*template.Template{}, assets: map[string]asset{}}
	for name, media := range map[string]string{"console.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8"} {
		content, err := files.ReadFile("static/" + name)
		if err != nil {
			return nil, err
		}
		sum := sha512.Sum384(content)
		digest := base64.StdEncoding.EncodeToString(sum[:])
		c.assets[name] = asset{content, media, "sha384-" + digest,
			"/console/static/" + name + "?" + url.Values{"v": {digest[:12]}}.Encode()}
	}
	for _, name := range []string{"overview", "calls", "call", "check", "tools", "tool", "policy", "audit", "approvals", "approval",
		"limits", "running", "threads", "thread", "stops", "candidate", "agent", "found", "login", "problem"} {
		parsed, err := template.New("layout.html").Funcs(c.functions()).ParseFS(files, "pages/layout.html", "pages/"+name+".html")
		if err != nil {
			return nil, err
		}
		c.pages[name] = parsed
	}
	c.routes()
	return c, nil
}

// routes adds the pages.
func (c *Console) routes() {
	c.handle("GET /console", c.overview)
	c.handle("GET /console/calls", c.calls)
	c.handle("GET /console/calls/{call_id}", c.call)
	c.handle("GET /console/find", c.find)
	c.handle("GET /console/agents/{name}", c.agent)
	c.handle("GET /console/tools", c.tools)
	c.handle("GET /console/tools/{name}", c.tool)
	c.handle("GET /console/policy", c.policy)
	c.handle("GET /console/check", c.check)
	c.handle("POST /console/check", c.check)
	c.handle("GET /console/audit", c.audit)
	c.handle("GET /console/limits", c.limits)
	c.handle("GET /console/candidate", c.candidate)
	c.handle("GET /console/running", c.running)
	c.handle("GET /console/threads", c.threads)
	c.handle("GET /console/threads/{id}", c.thread)
	c.handle("POST /console/threads/{id}/close", c.closeThread)
	c.handle("GET /console/stops", c.stops)
	c.handle("POST /console/stops", c.stop)
	c.handle("POST /console/stops/{id}/resume", c.resume)
	c.handle("GET /console/approvals", c.approvals)
	c.handle("GET /console/approvals/{id}", c.approval)
	c.handle("POST /console/approvals/{id}", c.vote)
	c.handle("POST /console/approvals/{id}/revoke", c.revoke)
	c.handle("POST /console/grants/{id}/revoke", c.revokeGrant)
	c.handle("GET /console/events", func(w http.ResponseWriter, r *request) *refusal.Error {
		return c.options.API.StreamTo(w, r.Request, r.caller, "/v1/events")
	})
	c.mux.HandleFunc("GET /console/login", func(w http.ResponseWriter, r *http.Request) {
		c.show(w, &request{Request: r}, http.StatusOK, "login", page{Title: "Sign in", Data: ""})
	})
	c.mux.HandleFunc("POST /console/session", c.signIn)
	c.mux.HandleFunc("POST /console/session/end", c.signOut)
	c.mux.HandleFunc("GET /console/static/{name}", func(w http.ResponseWriter, r *http.Request) {
		a, ok := c.assets[r.PathValue("name")]
		if !ok {
			c.refuse(w, &request{Request: r}, refusal.New(refusal.NotFound, "There is no such file."))
			return
		}
		w.Header().Set("Content-Type", a.media)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // its address has its digest
		_, _ = w.Write(a.content)                                              // the client may have left
	})
	for _, rest := range []string{"/console", "/console/"} { // and other methods
		c.handle(rest, func(http.ResponseWriter, *request) *refusal.Error {
			return refusal.New(refusal.NotFound, "There is no such page. It may have moved: Find, above, takes ids and names.")
		})
	}
}
