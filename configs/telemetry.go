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
	Endpoint string
	Headers  map[string]secret.Ref // sent with every export
	// CAFile names certificates in PEM that are trusted for the collector instead of the
	// system's; CA is its content.
	CAFile, CA string
	Timeout    time.Duration // of one export
}

// Traces sets where traces are sent.
type Traces struct {
	Collector
	SampleRatio float64 // of the traces that begin here, from 0 to 1
	Content     bool    // arguments and results too
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

// fields read where a collector is.
func (c *Collector) fields() []document.FieldReader {
	return []document.FieldReader{
		document.Text("endpoint", "the address of a collector, as OTLP over HTTP", &c.Endpoint).Matching(`^https?://[^?#@]+$`),
		document.Field("headers", func(n document.Node) { readHeaders(n, &c.Headers) }),
		document.Text("ca_file", "a file of certificates", &c.CAFile),
		document.Duration("timeout", "how long one export may take", &c.Timeout),
	}
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

// readShipping reads where the records of the audit log go beside their file.
func readShipping(n document.Node, into *Collector) {
	*into = defaultCollector()
	if !n.Object(into.fields()...) || !n.Requires("found audit.otlp without an %s; expected the address of a collector", "endpoint") {
		return
	}
	failFrom(n, into.LogOptions().Validate())
	if u, err := url.Parse(into.Endpoint); err == nil && u.Scheme == "http" && !netx.IsLoopbackHost(u.Hostname()) {
		n.At("/endpoint").Warn("the records of the audit log are sent without TLS: anyone on the way can read and alter them")
	}
}

// readTraces reads where traces go.
func readTraces(n document.Node, into *Traces) {
	*into = defaultTraces()
	ok := n.Object(append(into.fields(),
		document.Ratio("sampling_ratio", "of the traces that begin here", &into.SampleRatio),
		document.Bool("content", "whether traces hold arguments and results", &into.Content),
	)...)
	if !ok || !n.Requires("found traces without an %s; expected the address of a collector", "endpoint") {
		return
	}
	failFrom(n, into.Options().Validate())
}

// headerName is a token (RFC 9110, section 5.6.2).
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// The bounds of telemetry.metrics.max_series.
const (
	defaultMaxSeries = 1000
	highestMaxSeries = 100_000
)

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
