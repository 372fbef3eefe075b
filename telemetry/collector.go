package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	otelsdk "go.opentelemetry.io/otel/sdk"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// collector is the client of an OTLP/HTTP collector, as OpenTelemetry's exporter
// asks for one. It is written here since the client that OpenTelemetry brings
// links gRPC, and lets the environment choose address, headers and proxy.
type collector struct {
	address  string
	headers  func() map[string]string
	resource *resource.Resource
	http     *http.Client
	items    string // what is sent, in the plural
}

// newCollector returns the client of a collector. path is that of an endpoint without one, and
// items are what is sent to it.
func newCollector(o CollectorOptions, path, items string) (*collector, error) {
	address, err := o.address(path)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{ // no proxy
		TLSClientConfig: &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		MaxConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: o.Timeout,
	}
	return &collector{
		address: address, headers: o.Headers, resource: resourceOf(o), items: items,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the headers are for this address alone
		}},
	}, nil
}

// resourceOf names the process.
func resourceOf(o CollectorOptions) *resource.Resource {
	r := &resource.Resource{}
	add := func(key attribute.Key, value string) {
		if value != "" {
			text := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: truncate(value, maxName)}}
			r.Attributes = append(r.Attributes, &common.KeyValue{Key: string(key), Value: text})
		}
	}
	add("service.name", cmp.Or(o.Service, "callgate"))
	add("service.version", o.Version)
	add("service.instance.id", o.Replica)
	add("telemetry.sdk.name", "opentelemetry")
	add("telemetry.sdk.language", "go")
	add("telemetry.sdk.version", otelsdk.Version())
	return r
}

func (c *collector) Start(context.Context) error { return nil }

func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, and again while the collector may take them later,
// until ctx ends.
func (c *collector) UploadTraces(ctx context.Context, spans []*wire.ResourceSpans) error {
	for _, s := range spans {
		s.Resource, s.SchemaUrl = c.resource, ""
	}
	// On the wire a request to export is what this is: one field, with this number.
	body, err := proto.Marshal(&wire.TracesData{ResourceSpans: spans})
	if err != nil {
		return errors.New("the spans cannot be encoded")
	}
	var before error
	pauses := backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: time.Minute}
	for {
		retry, err := c.send(ctx, body)
		if err != nil && ctx.Err() != nil && before != nil {
			return before // says more than that the time is over
		}
		if err == nil || !retry {
			return err
		}
		before = err
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return err
		}
	}
}

// send posts one body, and reports whether it may be sent again.
func (c *collector) send(ctx context.Context, body []byte) (retry bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	if c.headers != nil {
		for name, value := range c.headers() {
			request.Header.Set(name, value)
		}
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "callgate")
	response, err := c.http.Do(request)
	if err != nil {
		var untrusted *tls.CertificateVerificationError
		return ctx.Err() == nil && !errors.As(err, &untrusted), err
	}
	defer response.Body.Close()
	// Only the status and a number are reported: the text may repeat what was sent.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	switch s := response.StatusCode; {
	case s >= 200 && s <= 299:
		if n := rejected(text); n > 0 {
			return false, &rejectedError{n, c.items}
		}
		return false, nil
	case s == http.StatusTooManyRequests || s == http.StatusBadGateway || s == http.StatusServiceUnavailable || s == http.StatusGatewayTimeout:
		return true, statusError(s)
	default:
		return false, statusError(s)
	}
}

// statusError is the HTTP status by which a collector did not take a batch.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("the collector answered %d", int(s)) }

// maxResponse bounds what is read of an answer.
const maxResponse = 64 << 10

// rejectedError says that a collector took a batch, but for some spans or records.
type rejectedError struct {
	count uint64
	items string
}

func (e *rejectedError) Error() string {
	return fmt.Sprintf("the collector refused %d %s", e.count, e.items)
}

// rejected reads of an answer how many spans or records were refused: the first field
// of the message in its first field.
func rejected(answer []byte) uint64 {
	number, kind, n := protowire.ConsumeTag(answer)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return 0
	}
	partial, m := protowire.ConsumeBytes(answer[n:])
	if m < 0 {
		return 0
	}
	if number, kind, n = protowire.ConsumeTag(partial); n < 0 || number != 1 || kind != protowire.VarintType {
		return 0
	}
	count, m := protowire.ConsumeVarint(partial[n:])
	if m < 0 {
		return 0
	}
	return count
}
