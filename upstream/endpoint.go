package upstream

import (
	"net/netip"
	"net/url"
	"strings"
)

// Endpoint is a path below the base URL of an upstream.
type Endpoint string

// The endpoints that requests are posted to.
const (
	ChatCompletions Endpoint = "/chat/completions"
	Messages        Endpoint = "/messages"
	CountTokens     Endpoint = "/messages/count_tokens"
	Responses       Endpoint = "/responses"
	InputTokens     Endpoint = "/responses/input_tokens"
)

// listEndpoint is where an upstream lists its models.
const listEndpoint Endpoint = "/models"

// endpointsOf returns the URLs below a base URL that ends without a slash; none if it cannot be
// parsed.
func endpointsOf(base string) map[Endpoint]*url.URL {
	all := map[Endpoint]*url.URL{}
	endpoints := []Endpoint{CountTokens, InputTokens, listEndpoint}
	for _, a := range asked {
		endpoints = append(endpoints, a.at)
	}
	for _, e := range endpoints {
		if target, err := url.Parse(base + string(e)); err == nil {
			all[e] = target
		}
	}
	return all
}

// isPlain reports whether outbound sends to an endpoint as net/http would, but reads
// and writes on the goroutine of the caller: without TLS, and so HTTP/1.1, at a host that can be
// no IPv4 address in an old spelling.
func isPlain(endpoint *url.URL) bool {
	if endpoint == nil || endpoint.Scheme != "http" {
		return false
	}
	host := strings.TrimSuffix(endpoint.Hostname(), ".")
	label := host[strings.LastIndexByte(host, '.')+1:]
	if label != "" && (label[0] < '0' || label[0] > '9') {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isMetered reports whether an answer of the endpoint is output of a model.
func (e Endpoint) isMetered() bool {
	for _, a := range asked {
		if a.at == e {
			return true
		}
	}
	return false
}

// wholeEndpoint returns the endpoint in which the path of a base URL ends; "" if there is none.
func wholeEndpoint(path string) Endpoint {
	for _, a := range asked {
		if strings.HasSuffix(strings.TrimSuffix(path, "/"), string(a.at)) {
			return a.at
		}
	}
	return ""
}
