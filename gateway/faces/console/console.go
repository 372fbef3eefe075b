// Package console serves the pages for operators below /console of the admin listener.
//
// Every page renders the answer of one endpoint of the admin API (gateway/faces/admin): the same
// value that the API writes as JSON, so that a page and the API cannot differ. The pages are
// rendered here with html/template, from files in this binary, and work without JavaScript;
// the one script (static/live.js) fetches the page again when something has changed, and
// replaces the parts marked data-live.
//
// Nearly every text on a page was written by a model, a caller or a tool. Templates escape it,
// a page is written with every invisible character as \u…, and the Content-Security-Policy
// allows nothing but the two files of this package. Only forms change anything, by POST from a
// page of the gateway itself.
package console

import (
	"bytes"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

//go:embed pages/*.html static/*
var files embed.FS

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types live"

// Options are the parts of a console.
type Options struct {
	API *admin.API
	// Loopback says that pages come over connections of this machine alone, so that the cookie
	// of a session needs no TLS.
	Loopback bool
	// AgentTime bounds the search of the log for the page of an agent, which leads on to what it has not read.
	// 0 is 60 ms.
	AgentTime time.Duration
	Log       *slog.Logger
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	options  Options
	mux      *http.ServeMux
	pages    map[string]*template.Template
	assets   map[string]asset
	sessions sessions
}

// asset is a file of static/, with its digest as browsers check it.
type asset struct {
	content   []byte
	media     string
	Integrity string
	URL       string
}

// Serves reports whether a path is one of the console's.
func (c *Console) Serves(path string) bool {
	return path == "/console" || strings.HasPrefix(path, "/console/")
}

// page is the data of a template.
type page struct {
	Title string
	Path  string // of the page, for the navigation
	Live  string // kinds of events after which it is fetched again, separated by spaces
	// Caller is the operator that looks, Session whether by a cookie.
	Caller  admin.Caller
	Session bool
	Data    any // the answer of the API
	Form    any // what the form of the page holds
	Waiting int // approvals that wait for votes, as far as the caller may know
}

// request is a request of a known caller.
type request struct {
	*http.Request
	caller  admin.Caller
	session bool
}

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer the Origin of a form is null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if refused := c.options.API.CheckOrigin(r); refused != nil {
		c.show(w, &request{Request: r}, refused.Status(), "problem", page{Title: "Refused", Data: refused})
		return
	}
	c.mux.ServeHTTP(w, r)
}

// handle adds a page for callers that are known. Others are asked to sign in.
func (c *Console) handle(pattern string, serve func(http.ResponseWriter, *request) *refusal.Error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		caller, session, refused := c.authenticate(r)
		q := &request{r, caller, session}
		if refused == nil {
			refused = serve(w, q)
		}
		switch {
		case refused == nil:
		case refused.Code == refusal.Unauthenticated && r.Method == http.MethodGet && r.URL.Path != "/console/events":
			http.Redirect(w, r, "/console/login", http.StatusSeeOther)
		default:
			c.refuse(w, q, refused)
		}
	})
}

// authenticate returns the caller by the header Authorization, as a proxy may add it, or by the
// cookie of a session.
func (c *Console) authenticate(r *http.Request) (caller admin.Caller, session bool, refused *refusal.Error) {
	if len(r.Header["Authorization"]) > 0 {
		caller, refused = c.options.API.AuthenticateRequest(r)
		return caller, false, refused
	}
	credential, session := c.sessions.credential(r)
	caller, refused = c.options.API.Authenticate(credential)
	return caller, session, refused
}

// show renders a page. Nothing is written before the whole page was rendered.
func (c *Console) show(w http.ResponseWriter, r *request, status int, name string, p page) {
	p.Path, p.Caller, p.Session = r.URL.Path, r.caller, r.session
	if r.caller.Operator {
		if status, refused := ask[admin.Status](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/status"}); refused == nil &&
			status.ApprovalsWaiting != nil {
			p.Waiting = *status.ApprovalsWaiting
		}
	}
	var b bytes.Buffer
	if err := c.pages[name].Execute(&b, p); err != nil {
		c.options.Log.Error("a page of the console could not be rendered", "page", name, "cause", err.Error())
		http.Error(w, "The page could not be rendered. The reason is in the log of the gateway.", http.StatusInternalServerError)
		return
	}
	// The templates are ASCII: every invisible character is of a value.
	body := wrapper.EscapeText(b.String())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write([]byte(body)); err != nil {
		c.options.Log.Debug("a client of the console left", "cause", err.Error())
	}
}

// titleOf is the title of a page that says why what a request of a page asks for is not shown.
func titleOf(r *request, refused *refusal.Error) string {
	switch {
	case refused.Code == refusal.NotFound:
		return "Page not found"
	case refused.Code == refusal.BadRequest && r.Method == http.MethodGet && r.URL.RawQuery != "":
		return "Invalid filter"
	}
	return "Refused"
}

// refuse shows why a page is not shown.
func (c *Console) refuse(w http.ResponseWriter, r *request, refused *refusal.Error) {
	c.show(w, r, refused.Status(), "problem", page{Title: titleOf(r, refused), Data: refused})
}

// ask asks the API for the caller of a request.
func ask[T any](c *Console, r *request, a admin.Ask) (T, *refusal.Error) {
	var none T
	answer, refused := c.options.API.Answer(r.Context(), r.caller, a)
	if refused != nil {
		return none, refused
	}
	switch v := answer.(type) {
	case T:
		return v, nil
	case *T:
		return *v, nil
	}
	return none, refusal.New(refusal.Internal, "The API gave another answer than the page expects.")
}

// showAnswer shows the page that is made of the answer to one question.
func showAnswer[T any](c *Console, w http.ResponseWriter, r *request, template string, a admin.Ask, of func(T) page) *refusal.Error {
	answer, refused := ask[T](c, r, a)
	if refused != nil {
		return refused
	}
	c.show(w, r, http.StatusOK, template, of(answer))
	return nil
}

// maxSignIn is the longest form of a credential, in bytes: it is read of callers that are not
// known.
const maxSignIn = 16 << 10

// signIn begins a session with a credential from the form.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := r.ParseForm(); err != nil {
		c.refuse(w, q, refusal.New(refusal.BadRequest, "The form cannot be read."))
		return
	}
	credential := identity.Bearer("Bearer " + strings.TrimSpace(r.PostForm.Get("key")))
	caller, refused := c.options.API.Authenticate(credential)
	if refused != nil || credential == "" || !caller.Operator && len(caller.Approves) == 0 {
		c.show(w, q, http.StatusUnauthorized, "login", page{Title: "Sign in", Data: "This is not the key of an operator or an approver."})
		return
	}
	http.SetCookie(w, c.sessions.begin(caller.Name, credential, !c.options.Loopback))
	http.Redirect(w, r, "/console", http.StatusSeeOther) // which leads approvers to their page
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.sessions.end(r, !c.options.Loopback))
	http.Redirect(w, r, "/console/login", http.StatusSeeOther)
}
