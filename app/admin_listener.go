package app

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/wrapper"
)

// The bounds of the admin listener: its callers must not hold the process up.
const (
	maxAdminRequests = 16 // requests that are answered at the same time
	adminTimeout     = 30 * time.Second
)

// ownHandler serves some paths, and checks its requests itself.
type ownHandler interface {
	http.Handler
	Serves(path string) bool
}

// servesConsole reports whether one of the handlers has the pages of the console.
func servesConsole(own []ownHandler) bool {
	return slices.ContainsFunc(own, func(h ownHandler) bool { return h.Serves("/console") })
}

// adminGuard checks requests to the admin listener. On loopback it admits every program of
// this machine, but no web page of another site; on any other address it admits operators
// only. Liveness (/healthz) needs no credential. The admin API and the console
// check their requests themselves: their callers are not all operators, and on loopback they
// need a credential too.
func adminGuard(s configs.Server, k *gateway.Kernel, own []ownHandler, next http.Handler) http.Handler {
	room, console := make(chan struct{}, maxAdminRequests), servesConsole(own)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console && r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			if refused := (server.AllowedOrigins{}).Check(r); refused != nil {
				http.Error(w, refused.Message, refused.Status())
				return
			}
			http.Redirect(w, r, "/console", http.StatusSeeOther) // where a person signs in
			return
		}
		for _, h := range own {
			if h.Serves(r.URL.Path) {
				h.ServeHTTP(w, r)
				return
			}
		}
		if r.URL.Path != "/healthz" {
			// server.origins and server.hosts are for the main listener.
			refused := server.AllowedOrigins{}.Check(r)
			if refused == nil && s.AdminBeyondLoopback() {
				refused = checkOperator(k, r)
			}
			if refused != nil {
				if refused.Code == refusal.Unauthenticated {
					w.Header().Set("WWW-Authenticate", "Bearer")
				}
				http.Error(w, refused.Message, refused.Status())
				return
			}
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests are being answered.", http.StatusServiceUnavailable)
		}
	})
}

// checkOperator refuses a request that does not carry exactly one credential of an operator.
func checkOperator(k *gateway.Kernel, r *http.Request) *refusal.Error {
	credential := ""
	if all := r.Header["Authorization"]; len(all) == 1 {
		credential = identity.Bearer(all[0])
	}
	return k.CheckOperator(credential)
}

// healthOf returns a function that returns the state of the process.
func healthOf(watch *reload.Watcher, h *Runtime, authn *Authn, front *server.Server) func() admin.Health {
	return func() admin.Health { return health(watch, h, authn, front) }
}

func health(watch *reload.Watcher, h *Runtime, authn *Authn, front *server.Server) admin.Health {
	s := watch.State()
	r := admin.Health{Ready: !front.Draining(), Digest: s.Digest, Since: s.Since, Restart: s.RestartKeys, InFlight: front.InFlight()}
	r.Limits, r.Calls, r.Servers = h.limiter.unavailable(), h.store.unavailable(), h.Servers.Statuses()
	r.Threads = h.threads.unavailable()
	if r.Stops = h.stops.Problem(); r.Calls == "" && !h.stops.Known() {
		r.Calls = r.Stops
	}
	if err := authn.unready(); err != nil {
		r.Ready, r.Callers = false, err.Error()
	}
	if len(s.Faults) > 0 {
		r.Failing = &s.FailingSince
		for _, f := range s.Faults {
			r.Faults = append(r.Faults, f.Error())
		}
	}
	return r
}

// newAdminHandler serves operators: metrics, liveness, and readiness in detail.
func newAdminHandler(health func() admin.Health, metrics *telemetry.Metrics) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "This is the admin listener of Callgate: /metrics, /healthz, /readyz and the admin API below /v1. It serves no console.")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := health()
		body, err := wrapper.Marshal(r)
		if err != nil {
			http.Error(w, "internal", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if !r.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, "%s\n", body)
	})
	return mux
}
