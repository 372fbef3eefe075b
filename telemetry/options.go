package telemetry

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"
)

// TraceOptions say where traces go, and what stands in them. The environment
// says nothing: the variables OTEL_* change none of it.
type TraceOptions struct {
	// Endpoint is the collector's address, which takes OTLP over HTTP in protobuf:
	// http or https. Without a path it is /v1/traces.
	Endpoint string
	// Headers are sent with every export, such as the collector's credential; nil
	// are none. They are read for each export, and never reported.
	Headers func() map[string]string
	// RootCAs are trusted for the certificate of an https collector; nil means the
	// system's.
	RootCAs *x509.CertPool
	// SampleRatio is the share of traces, from 0 to 1, that is taken of those that begin
	// here. Where the caller named a parent, its decision holds.
	SampleRatio float64
	// Content adds the arguments and the results of calls, without what is marked
	// x-secret, each up to 8 KiB.
	Content bool
	// Service, Version and Replica name this process; an empty Service is callgate.
	Service, Version, Replica string
	// Timeout bounds the export of one batch, with all its attempts; 0 is 10 s.
	Timeout time.Duration
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
	_, err := o.address()
	switch {
	case err != nil:
		return err
	case math.IsNaN(o.SampleRatio) || o.SampleRatio < 0 || o.SampleRatio > 1:
		return fmt.Errorf("sampling_ratio: found %v; expected a number from 0 to 1", o.SampleRatio)
	case o.Timeout < 0 || o.Timeout > maxTimeout:
		return fmt.Errorf("timeout: found %v; expected at most %v", o.Timeout, maxTimeout)
	case o.Delay < 0 || o.Delay > maxTimeout:
		return fmt.Errorf("delay: found %v; expected at most %v", o.Delay, maxTimeout)
	}
	return nil
}

// address is the collector's URL. What its errors say holds nothing of the
// text: it may have been given a credential by mistake.
func (o TraceOptions) address() (string, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("endpoint: found something else; expected an address such as http://localhost:4318/v1/traces")
	case u.User != nil:
		return "", errors.New("endpoint: found a user in the address; expected its credential among the headers")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("endpoint: found a query or a fragment; expected none")
	}
	if u.Path == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}
