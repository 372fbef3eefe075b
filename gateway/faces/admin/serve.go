package admin

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// ServeHTTP answers a request. A Host or Origin that is not this gateway's is refused before
// anything else is looked at.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if refused := a.CheckOrigin(r); refused != nil {
		a.refuse(w, refused)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// serve answers a request for an endpoint.
func (a *API) serve(w http.ResponseWriter, r *http.Request, e *Endpoint) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // until the body is read: else a refusal waits for it
	}
	caller, refused := a.AuthenticateRequest(r)
	if refused != nil {
		a.refuse(w, refused)
		return
	}
	if refused := caller.check(e.Access); refused != nil {
		a.refuse(w, refused)
		return
	}
	request, refused := a.read(w, r, e, caller)
	if refused != nil {
		a.refuse(w, refused)
		return
	}
	// Only now: a body that arrives slowly takes no place of those that are answered.
	leave, refused := a.enter(caller, e)
	if refused != nil {
		a.refuse(w, refused)
		return
	}
	defer leave()
	if e.Stream != nil {
		a.stream(w, request, e)
		return
	}
	answer, refused := a.call(e, request)
	if refused != nil {
		a.refuse(w, refused)
		return
	}
	a.write(w, http.StatusOK, answer)
}

// wrongMethod refuses a method that a path does not have, and names those that it has.
func (a *API) wrongMethod(w http.ResponseWriter, path string) *refusal.Error {
	var methods []string
	for i := range a.endpoints {
		if a.endpoints[i].Path == path {
			methods = append(methods, a.endpoints[i].Method)
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return refusal.New(refusal.MethodNotAllowed, "This path does not have this method; it has "+strings.Join(methods, ", ")+".")
}

// check refuses a caller that may not use endpoints of an access.
func (c Caller) check(access Access) *refusal.Error {
	if c.mayUse(access) {
		return nil
	}
	who := "operators"
	if access == Approvers {
		who = "operators and approvers"
	}
	return refusal.At(refusal.Identity, refusal.PermissionDenied, "Only "+who+" may do this.")
}

// enter admits a caller to an endpoint, where there is room; the caller leaves once it was
// answered.
func (a *API) enter(caller Caller, e *Endpoint) (leave func(), refused *refusal.Error) {
	if refused := caller.check(e.Access); refused != nil {
		return nil, refused
	}
	if e.Stream != nil {
		return a.take(a.streams, caller)
	}
	return a.take(a.requests, caller)
}

// take takes a place for a caller. Where no credentials are required, nobody can be told from
// another, and each request counts for itself.
func (a *API) take(of *server.Quota, caller Caller) (leave func(), refused *refusal.Error) {
	client := caller.Name
	if client == "" {
		client = strconv.FormatUint(a.nameless.Add(1), 10)
	}
	if !of.Take(client, 1) {
		refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
		refused.RetryAfterMS = 1000
		return nil, refused
	}
	return func() { of.Release(client, 1) }, nil
}

// call calls an endpoint. A panic is an internal error.
func (a *API) call(e *Endpoint, r *Request) (answer any, refused *refusal.Error) {
	err := safe.Do(func() (err error) {
		answer, err = e.Serve(r)
		return err
	})
	if err != nil {
		return nil, a.refusalOf(e, err)
	}
	return answer, nil
}

func (a *API) stream(w http.ResponseWriter, r *Request, e *Endpoint) {
	if err := safe.Do(func() error { return e.Stream(w, r) }); err != nil {
		a.options.Log.Debug("a stream of events ended", "path", e.Path, "cause", err.Error())
	}
}

// Ask is a question to an endpoint that does not come over HTTP.
type Ask struct {
	Method, Path string            // of the endpoint, as it was mounted
	Wildcards    map[string]string // of the path
	Query        url.Values
	Body         any // is marshalled to JSON; nil is none
}

// Answer asks an endpoint for a caller, as its HTTP request would be, and returns the value
// that would be the JSON of its answer.
func (a *API) Answer(ctx context.Context, caller Caller, ask Ask) (any, *refusal.Error) {
	e := a.find(ask.Method, ask.Path)
	if e == nil || e.Serve == nil {
		return nil, notFound()
	}
	leave, refused := a.enter(caller, e)
	if refused != nil {
		return nil, refused
	}
	defer leave()
	request := &Request{Caller: caller, ctx: ctx, path: func(name string) string { return ask.Wildcards[name] }}
	if request.query, refused = readQuery(ask.Query.Encode(), e.Query); refused != nil {
		return nil, refused
	}
	if ask.Body != nil {
		body, err := wrapper.Marshal(ask.Body)
		if err != nil {
			return nil, a.refusalOf(e, err)
		}
		request.Body = body
	}
	return a.call(e, request)
}

// StreamTo answers a caller with the stream of an endpoint.
func (a *API) StreamTo(w http.ResponseWriter, r *http.Request, caller Caller, path string) *refusal.Error {
	e := a.find(http.MethodGet, path)
	if e == nil || e.Stream == nil {
		return notFound()
	}
	leave, refused := a.enter(caller, e)
	if refused != nil {
		return refused
	}
	defer leave()
	a.stream(w, &Request{Caller: caller, ctx: r.Context()}, e)
	return nil
}

// Has reports whether there is an endpoint.
func (a *API) Has(method, path string) bool { return a.find(method, path) != nil }

func (a *API) find(method, path string) *Endpoint {
	i := slices.IndexFunc(a.endpoints, func(e Endpoint) bool { return e.Method == method && e.Path == path })
	if i < 0 {
		return nil
	}
	return &a.endpoints[i]
}

// refusalOf is the refusal for an error of an endpoint. Its cause is for the log.
func (a *API) refusalOf(e *Endpoint, err error) *refusal.Error {
	refused := refusal.From(refusal.Any, err)
	if refused.Code == refusal.Internal {
		a.options.Log.Error("a request of the admin API failed", "path", e.Path, "cause", err.Error())
		return refusal.New(refusal.Internal, "The gateway could not answer this. The reason is in its log.")
	}
	return refused
}
