package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/door"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/wrapper"
)

// readiness is what the admin listener says of the gateway.
type readiness struct {
	Ready    bool             `json:"ready"`
	Digest   string           `json:"digest"` // of the configuration that is served
	Since    time.Time        `json:"since"`
	Failing  *time.Time       `json:"failing,omitempty"` // since when the files do not load
	Faults   []string         `json:"faults,omitempty"`  // why, with file and line
	Restart  []string         `json:"restart,omitempty"` // keys that have changed and wait for it
	Limits   string           `json:"limits,omitempty"`  // why limits that replicas share are not shared
	Calls    string           `json:"calls,omitempty"`   // why calls cannot be kept
	Callers  string           `json:"callers,omitempty"` // why nobody can be let in
	Servers  []serverStanding `json:"servers,omitempty"` // how those are where tools were found
	InFlight int              `json:"in_flight"`
}

// newAdmin is the face for operators alone: metrics, and readiness in detail.
func newAdmin(watch *configs.Watch, limits limits, calls keeping, servers *fleet, who *callers, metrics *telemetry.Metrics, front *door.Door) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := watch.State()
		r := readiness{Ready: !front.Draining(), Digest: s.Digest, Since: s.Since, Restart: s.Waiting, InFlight: front.InFlight()}
		r.Limits, r.Calls, r.Servers = limits.away(), calls.away(), servers.standings()
		if err := who.unready(); err != nil {
			r.Ready, r.Callers = false, err.Error()
		}
		if len(s.Faults) > 0 {
			r.Failing = &s.Failing
			for _, f := range s.Faults {
				r.Faults = append(r.Faults, f.Error())
			}
		}
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
