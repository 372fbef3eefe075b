package telemetry

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// CollectorOptions say where a collector is, and what names this process there. The
// environment says nothing: the variables OTEL_* change none of it.
type CollectorOptions struct {
	// Endpoint is the collector's address, which takes OTLP over HTTP in protobuf:
	// http or https. Without a path it is the usual one of the signal.
	Endpoint string
	// Headers are sent with every export, such as the collector's credential; nil
	// are none. They are read for each export, and never reported.
	Headers func() map[string]string
	// RootCAs are trusted for the certificate of an https collector; nil means the
	// system's.
	RootCAs *x509.CertPool
	// Service, Version and Replica name this process; an empty Service is callgate.
	Service, Version, Replica string
	// Timeout bounds the export of one batch; 0 is 10 s.
	Timeout time.Duration
}

// TraceOptions say where traces go, and what stands in them. The environment
// says nothing: the variables OTEL_* change none of it.
type TraceOptions struct {
	CollectorOptions // its Timeout is of all attempts
	// SampleRatio is the share of traces, from 0 to 1, that is taken of those that begin
	// here. Where the caller named a parent, its decision holds.
	SampleRatio float64
	// Content adds the arguments and the results of calls, without what is marked
	// x-secret, each up to 8 KiB.
	Content bool
	// Delay is how long a span waits for others at most; 0 is 5 s.
	Delay time.Duration
	// OnLoss receives what was lost and why, at most once a minute; it may be nil.
	// It must not block.
	OnLoss func(error)
}

// maxTimeout bounds how long one batch may hold up those after it.
const maxTimeout = time.Minute

// Validate tells what is wrong with the options.
func (o TraceOptions) Validate() error {
	err := o.validate(tracesPath)
	switch {
	case err != nil:
		return err
	case math.IsNaN(o.SampleRatio) || o.SampleRatio < 0 || o.SampleRatio > 1:
		return fmt.Errorf("sampling_ratio: found %v; expected a number from 0 to 1", o.SampleRatio)
	case o.Delay < 0 || o.Delay > maxTimeout:
		return fmt.Errorf("delay: found %s; expected at most %s", duration.Spell(o.Delay), duration.Spell(maxTimeout))
	}
	return nil
}

// The paths of endpoints that have none.
const (
	tracesPath = "/v1/traces"
	logsPath   = "/v1/logs"
)

// validate tells what is wrong with the options; path is that of an endpoint without one.
func (o CollectorOptions) validate(path string) error {
	if _, err := o.address(path); err != nil {
		return err
	}
	if o.Timeout < 0 || o.Timeout > maxTimeout {
		return fmt.Errorf("timeout: found %s; expected at most %s", duration.Spell(o.Timeout), duration.Spell(maxTimeout))
	}
	return nil
}

// address is the collector's URL. Its errors hold nothing of the
// text: it may have been given a credential by mistake.
func (o CollectorOptions) address(path string) (string, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("endpoint: found no address of http or https; expected one such as http://localhost:4318" + path)
	case u.User != nil:
		return "", errors.New("endpoint: found a user in the address; expected its credential among the headers")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("endpoint: found a query or a fragment; expected none")
	}
	if u.Path == "" {
		u.Path = path
	}
	return u.String(), nil
}
