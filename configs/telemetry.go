package configs

import (
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/telemetry"
)

// Traces sets where traces are sent; without an endpoint there are none.
type Traces struct {
	Endpoint string
	Headers  map[string]secret.Ref // sent with every export
	// CAFile names certificates in PEM that are trusted for the collector instead of the
	// system's; CA is its content.
	CAFile, CA string

	SampleRatio float64 // of the traces that begin here, from 0 to 1
	Content     bool    // arguments and results too
	Timeout     time.Duration
}

func defaultTraces() Traces { return Traces{SampleRatio: 1, Timeout: 10 * time.Second} }

// Options are those of telemetry, but for the certificates, what names the process and what
// it reports to. A header whose secret is missing is left out.
func (t Traces) Options() telemetry.TraceOptions {
	o := telemetry.TraceOptions{Endpoint: t.Endpoint, SampleRatio: t.SampleRatio, Content: t.Content, Timeout: t.Timeout}
	headers := maps.Clone(t.Headers)
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

// readTraces reads where traces go.
func readTraces(n document.Node, into *Traces) {
	*into = defaultTraces()
	ok := n.Object(
		document.Text("endpoint", "the address of a collector, as OTLP over HTTP", &into.Endpoint),
		document.Field("headers", func(n document.Node) {
			into.Headers = map[string]secret.Ref{}
			n.Members("headers", func(key, value document.Node) {
				var s secret.Ref
				for other := range into.Headers {
					if strings.EqualFold(other, key.Value) {
						key.Fail("found the header %s twice, since case makes no difference; expected it once", other)
					}
				}
				if !headerName.MatchString(key.Value) {
					key.Fail("found a header with characters that none has; expected a name such as Authorization")
				}
				secret.Decode(value, "what the header says", &s)
				into.Headers[key.Value] = s
			})
		}),
		document.Text("ca_file", "a file of certificates", &into.CAFile),
		document.Ratio("sampling_ratio", "of the traces that begin here", &into.SampleRatio),
		document.Renamed("sample", "sampling_ratio"),
		document.Bool("content", "whether traces hold arguments and results", &into.Content),
		document.Duration("timeout", "how long one export may take", &into.Timeout),
	)
	if !ok {
		return
	}
	if into.Endpoint == "" {
		n.Fail("found traces without an endpoint; expected the address of a collector")
		return
	}
	if err := into.Options().Validate(); err != nil {
		key, _, _ := strings.Cut(err.Error(), ":")
		n.At("/"+key).Fail("%v", err)
	}
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
