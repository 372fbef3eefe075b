package turns

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// served is where a wire is served: at the path where models are asked in it.
func served(wire upstream.Wire) string { return "/v1" + string(wire.Endpoint()) }

// Open begins the run of a request, which came over a wire, for a model. The upstream of the
// model must speak the same wire: nothing is translated. Its error is a *Failure.
func (o Options) Open(received server.Request, admission *gateway.Admission, wire upstream.Wire, model string) (*Run, error) {
	route, ok := o.Upstreams().Lookup(model)
	if !ok {
		return nil, noModel("There is no model %s here. GET /v1/models lists models that can be requested; the operator adds one to models of an upstream.", parser.Quote(model))
	}
	if !route.Speaks(wire) {
		var paths []string
		for _, w := range route.Rules.Speaks {
			paths = append(paths, "POST "+served(w))
		}
		elsewhere := strings.Join(paths, " or ")
		return nil, noModel("The model %s is not served at %s. Request it by %s. Where its provider has this API, the operator adds %s to speaks of the upstream %s.",
			parser.Quote(model), served(wire), elsewhere, wire, route.Upstream)
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	r := &Run{Admission: admission, Route: route, options: o, wire: wire, requestID: received.ID, slot: received.Slot}
	r.spending.run, r.heartbeat.interval, r.heartbeat.alarms = r, o.Heartbeat, o.heartbeats
	return r, nil
}

// noModel is the failure of a request for a model that is not served.
func noModel(format string, args ...any) *Failure {
	return &Failure{Refused: refusal.New(refusal.NotFound, fmt.Sprintf(format, args...)), Param: "model"}
}
