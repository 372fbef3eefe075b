// Package admin is the API of operators on the admin listener (server.admin_listen): JSON
// answers below /v1/ about what the gateway does, and why. What changes something are votes,
// grants, stops and the closing of threads alone.
//
// Every endpoint is an Endpoint: who may use it, its parameters, and the types of its body
// and answer. The frame does for all of them what must not be forgotten for one: it checks
// Host and Origin, the credential, the query and the body before it calls an endpoint, bounds
// how many are answered at a time, and writes answers that no cache keeps. The description of
// the API (GET /v1/openapi.json) is generated from the endpoints.
//
// Without credentials (auth.mode none) every program of this machine sees everything. With
// them, operators do, and a principal that approves sees what is open to Approvers.
package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
)

// Access says who may use an endpoint.
type Access int

// Operators see everything. An endpoint for Approvers is open to operators too, and answers
// an approver only with what the approver may decide: the endpoint sees to that itself.
const (
	Operators Access = iota
	Approvers
)

// Endpoint is one method of one path.
type Endpoint struct {
	Method string // GET, POST or DELETE
	Path   string // below /v1/, as a pattern of http.ServeMux without a method
	// Summary is one line for the description of the API.
	Summary string
	Access  Access
	Query   []Parameter
	// Body and Answer are values of the types of the request's JSON object and of the answer;
	// a nil Body: the request has none.
	Body, Answer any
	// MaxBody bounds the body in bytes; nil is DefaultMaxBody.
	MaxBody func() int64
	// Serve returns the answer, which is written as JSON. Its error is a *refusal.Error;
	// anything else is an internal error, whose text is logged and not sent.
	Serve func(*Request) (any, error)
	// Stream answers in place of Serve, with a stream of events.
	Stream func(http.ResponseWriter, *Request) error
}

// Parameter is one name of a query, which may be there once.
type Parameter struct {
	Name, Description string
}

// DefaultMaxBody is the longest body of an endpoint that says nothing else, in bytes.
const DefaultMaxBody = 64 << 10

// The bounds of the API: its callers must not hold the process up, and one must not keep the others
// out. Of each, one principal has at most half.
const (
	maxRequests = 16 // that are answered at the same time
	maxStreams  = 32 // of events, beside them
	maxReading  = 64 // whose bodies are arriving, before they are answered
)

// Caller is the operator that sent a request.
type Caller struct {
	// Name is the principal's; empty where no credentials are required.
	Name string
	// Operator may see everything.
	Operator bool
	// Approves names the rules of approval by which it decides.
	Approves []string
	// Agents are those that the caller stands for.
	Agents []string
	// Until is until when its credential is accepted; zero: nothing ends it by itself.
	Until time.Time
}

// mayUse reports whether the caller may use an endpoint.
func (c Caller) mayUse(access Access) bool {
	return c.Operator || access == Approvers && len(c.Approves) > 0
}

// Kernel knows the principals of the configuration in force.
type Kernel interface {
	// Principal returns the principal of a credential, and nil where no credentials are
	// required. An unknown credential is refused.
	Principal(credential string) (*identity.Principal, *refusal.Error)
}

// Options are the parts of an API.
type Options struct {
	Kernel Kernel
	// Loopback says that only programs of this machine can reach the listener. Where it is
	// false, nobody is answered without a credential, whatever the configuration says.
	Loopback bool
	Log      *slog.Logger
}

// API serves the endpoints that are mounted. It is safe for concurrent use once requests are
// served.
type API struct {
	options   Options
	mux       *http.ServeMux
	endpoints []Endpoint
	origins   *http.CrossOriginProtection
	requests  *server.Quota
	streams   *server.Quota
	reading   *server.Quota
	nameless  atomic.Uint64 // requests of callers without a name

	description func() ([]byte, error) // OpenAPI, of the endpoints
}

// New returns an API of nothing but its own description.
func New(o Options) *API {
	a := &API{
		options: o, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		requests: server.NewQuota(maxRequests), streams: server.NewQuota(maxStreams), reading: server.NewQuota(maxReading),
	}
	a.description = sync.OnceValues(a.Describe)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { a.refuse(w, notFound()) })
	a.Mount(Endpoint{
		Method: http.MethodGet, Path: "/v1/openapi.json", Summary: "This description, in OpenAPI 3.1", Access: Approvers,
		Answer: Description{},
		Serve: func(*Request) (any, error) {
			text, err := a.description()
			return Description(text), err
		},
	})
	return a
}

// Mount adds endpoints. It must not be called once requests are served. Two of one method and
// path are a mistake of the program, and panic.
func (a *API) Mount(endpoints ...Endpoint) {
	for _, e := range endpoints {
		if (e.Serve == nil) == (e.Stream == nil) || e.Summary == "" || e.Answer == nil || !strings.HasPrefix(e.Path, "/v1/") {
			panic(fmt.Sprintf("admin: the endpoint %s %s is incomplete", e.Method, e.Path))
		}
		if !slices.ContainsFunc(a.endpoints, func(other Endpoint) bool { return other.Path == e.Path }) {
			a.mux.HandleFunc(e.Path, func(w http.ResponseWriter, r *http.Request) { a.refuse(w, a.wrongMethod(w, e.Path)) })
		}
		a.endpoints = append(a.endpoints, e)
		a.mux.HandleFunc(e.Method+" "+e.Path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, &e) })
	}
}

// Serves reports whether a path is one of the API's.
func (a *API) Serves(path string) bool { return strings.HasPrefix(path, "/v1/") }

// CheckOrigin refuses requests from pages of other sites, and requests to a name that is not
// this machine's on a connection that does not leave it: a browser takes the answer for one
// of the page's own site. A request that changes something must come from a page of the
// gateway itself, or from no page.
func (a *API) CheckOrigin(r *http.Request) *refusal.Error {
	if refused := (server.AllowedOrigins{SameOrigin: true}).Check(r); refused != nil {
		return refused
	}
	if err := a.origins.Check(r); err != nil {
		return refusal.New(refusal.BadRequest, "Pages of other sites may not ask here.").WithCause(err)
	}
	return nil
}

// Authenticate returns the caller with a credential, which may be empty.
func (a *API) Authenticate(credential string) (Caller, *refusal.Error) {
	p, refused := a.options.Kernel.Principal(credential)
	switch {
	case refused != nil:
		return Caller{}, refused
	case p != nil:
		return Caller{Name: p.Name, Operator: p.Operator, Approves: p.Approves, Agents: p.Agents, Until: p.Until}, nil
	case !a.options.Loopback:
		return Caller{}, refusal.New(refusal.Unauthenticated, "This needs the credential of an operator or an approver.")
	}
	return Caller{Operator: true}, nil
}

// AuthenticateRequest returns the caller of a request, which has at most one credential.
func (a *API) AuthenticateRequest(r *http.Request) (Caller, *refusal.Error) {
	credential := ""
	if all := r.Header["Authorization"]; len(all) == 1 {
		credential = identity.Bearer(all[0])
	}
	if len(r.Header["Authorization"]) > 0 && credential == "" {
		return Caller{}, refusal.New(refusal.Unauthenticated, "The header Authorization must be Bearer and one credential, once.")
	}
	return a.Authenticate(credential)
}

func notFound() *refusal.Error {
	return refusal.New(refusal.NotFound, "There is nothing at this path. The paths of the admin API are in /v1/openapi.json.")
}
