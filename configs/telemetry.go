package configs

import (
	"maps"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/telemetry"
)

// Collector says where a collector of OpenTelemetry is; without an endpoint nothing is sent.
type Collector struct {
	// The address of a collector, as OTLP over HTTP.
	Endpoint string `key:"endpoint" of:"the address of a collector, as OTLP over HTTP" pattern:"^https?://[^?#@]+$" example:"http://localhost:4318"`
	// Sent with every export; what they say stands elsewhere: env:NAME or file:PATH.
	Headers map[string]secret.Ref `key:"headers" example:"#{X-Token: env:NAME}"`
	// Trusted certificates (PEM) for the collector, instead of the system's.
	CAFile  string        `key:"ca_file" of:"a file of certificates" example:"#ca.pem"`
	CA      string        // the content of CAFile
	Timeout time.Duration `key:"timeout" of:"how long one export may take"`
}

// Traces sets where traces are sent.
type Traces struct {
	Collector `key:""`
	// The share of traces that begin here; a caller's parent decides for its own.
	SampleRatio float64 `key:"sampling_ratio" of:"of the traces that begin here"`
	// true: arguments and results too, without what a schema marks x-secret.
	Content bool `key:"content" of:"whether traces hold arguments and results"`
}

// Telemetry is what the gateway tells others of itself.
type Telemetry struct {
	// Where traces go; absent, nowhere.
	Traces Traces `key:"traces" example:""`
	// Names of agents and tools in the counters of judgements and outcomes.
	CallLabels telemetry.CallLabels `key:"metrics" restart:"" example:""`
}

// ReadNode reads the keys of telemetry.
func (t *Telemetry) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(t, document.Field("metrics", func(n document.Node) {
		n.Object(document.Fields(&t.CallLabels, document.Field("labels", func(n document.Node) { readCallLabels(n, &t.CallLabels) }))...)
	}))...)
}

func defaultCollector() Collector { return Collector{Timeout: 10 * time.Second} }

func defaultTraces() Traces { return Traces{Collector: defaultCollector(), SampleRatio: 1} }

// options are those of telemetry, but for the certificates and what names the process. A header
// whose secret is missing is left out.
func (c Collector) options() telemetry.CollectorOptions {
	o := telemetry.CollectorOptions{Endpoint: c.Endpoint, Timeout: c.Timeout}
	headers := maps.Clone(c.Headers)
	if len(headers) > 0 {
		o.Headers = func() map[string]string {
			sent := map[string]string{}
			for name, secret := range headers {
				if value, err := secret.Read(); err == nil {
					sent[name] = value
				}
			}
			return sent
		}
	}
	return o
}

// Options are those of telemetry, but for the certificates, what names the process and what
// it reports to.
func (t Traces) Options() telemetry.TraceOptions {
	return telemetry.TraceOptions{CollectorOptions: t.options(), SampleRatio: t.SampleRatio, Content: t.Content}
}

// LogOptions are those of telemetry, but for the certificates and what names the process.
func (c Collector) LogOptions() telemetry.LogOptions {
	return telemetry.LogOptions{CollectorOptions: c.options()}
}

// failFrom refuses options at the key that their error begins with.
func failFrom(n document.Node, err error) {
	if err != nil {
		key, _, _ := strings.Cut(err.Error(), ":")
		n.At("/"+key).Fail("%v", err)
	}
}

// readHeaders reads the headers that are sent with every export.
func readHeaders(n document.Node, into *map[string]secret.Ref) {
	*into = map[string]secret.Ref{}
	n.Members("headers", func(key, value document.Node) {
		key.Matching("the name of a header", headerName.String())
		var s secret.Ref
		for other := range *into {
			if strings.EqualFold(other, key.Value) {
				key.Fail("found the header %s twice, since case makes no difference; expected it once", other)
			}
		}
		if !headerName.MatchString(key.Value) {
			key.Fail("found a header with characters that none has; expected a name such as Authorization")
		}
		secret.Decode(value, "what the header says", &s)
		(*into)[key.Value] = s
	})
}

// headers is the field of the headers of a collector.
func (c *Collector) headers() document.FieldReader {
	return document.Field("headers", func(n document.Node) { readHeaders(n, &c.Headers) })
}

// ReadNode reads where the records of the audit log go beside their file.
func (c *Collector) ReadNode(n document.Node, _ string) {
	if !n.Object(document.Fields(c, c.headers())...) ||
		!n.Requires("found audit.otlp without an %s; expected the address of a collector", "endpoint") {
		return
	}
	failFrom(n, c.LogOptions().Validate())
	if u, err := url.Parse(c.Endpoint); err == nil && u.Scheme == "http" && !netx.IsLoopbackHost(u.Hostname()) {
		n.At("/endpoint").Warn("the records of the audit log are sent without TLS: anyone on the way can read and alter them")
	}
}

// ReadNode reads where traces go.
func (t *Traces) ReadNode(n document.Node, _ string) {
	if !n.Object(document.Fields(t, t.headers())...) ||
		!n.Requires("found traces without an %s; expected the address of a collector", "endpoint") {
		return
	}
	failFrom(n, t.Options().Validate())
}

// headerName is a token (RFC 9110, section 5.6.2).
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// readCallLabels reads which names are labels.
func readCallLabels(n document.Node, into *telemetry.CallLabels) {
	n.Unique()
	n.List("labels", func(_ int, item document.Node) {
		var label string
		document.ReadChoice(item, "a label of the metrics of calls", &label, "agent", "tool")
		at := map[string]*bool{"agent": &into.Agent, "tool": &into.Tool}[label]
		switch {
		case at == nil: // it was refused
		case *at:
			item.Fail("found the label %s twice; expected it once", label)
		default:
			*at = true
		}
	})
}
