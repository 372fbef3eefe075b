package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/callgate/callgate/internal/oserr"
)

// keySource is where the keys come from.
type keySource interface {
	// fetch returns a JWK set of at most maxDocument bytes.
	fetch(ctx context.Context) ([]byte, error)
	// name tells an operator where that is, without a query.
	name() string
}

// newSource returns the source of options that are valid.
func newSource(o TokenOptions) keySource {
	switch {
	case o.JWKSFile != "":
		return fileSource(o.JWKSFile)
	case o.JWKSURL != "":
		return urlSource{o.JWKSURL, newClient(o.JWKSURL, o.RootCAs)}
	}
	return discoverySource{o.Issuer, newClient(o.Issuer, o.RootCAs)}
}

// fileSource is a file with a JWK set. It is read again at each refresh.
type fileSource string

func (f fileSource) name() string { return "the key file " + string(f) }

func (f fileSource) fetch(context.Context) ([]byte, error) {
	// Opening a pipe would wait for a writer.
	if info, err := os.Stat(string(f)); err != nil {
		return nil, oserr.Reason(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("found no regular file")
	}
	file, err := os.Open(string(f))
	if err != nil {
		return nil, oserr.Reason(err)
	}
	defer file.Close()
	return readBounded(file)
}

var errTooLarge = fmt.Errorf("a document of more than %d bytes", maxDocument)

// readBounded reads at most maxDocument bytes.
func readBounded(r io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(document) > maxDocument {
		return nil, errTooLarge
	}
	return document, nil
}

// urlSource is an address that answers with a JWK set.
type urlSource struct {
	url    string
	client *httpClient
}

func (s urlSource) name() string {
	shown, _, _ := strings.Cut(s.url, "?")
	return "the keys at " + shown
}

func (s urlSource) fetch(ctx context.Context) ([]byte, error) { return s.client.fetch(ctx, s.url) }

// discoverySource finds the JWK set by the issuer's metadata (OpenID Connect Discovery
// 1.0, section 4), anew each time: an issuer may move its keys.
type discoverySource struct {
	issuer string
	client *httpClient
}

func (s discoverySource) name() string { return "the keys of the issuer " + s.issuer }

func (s discoverySource) fetch(ctx context.Context) ([]byte, error) {
	raw, err := s.client.fetch(ctx, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, fmt.Errorf("the discovery document: %w", err)
	}
	members, err := decodeObject(raw)
	if err != nil {
		return nil, fmt.Errorf("the discovery document is %w", err)
	}
	// Section 4.3: it must be the issuer that was asked for, to the byte.
	if issuer, ok := jsonString(members["issuer"]); !ok || issuer != s.issuer {
		return nil, errors.New("the discovery document is of another issuer")
	}
	location, ok := jsonString(members["jwks_uri"])
	if !ok {
		return nil, errors.New("the discovery document has no jwks_uri")
	}
	if found := urlProblem(location, true); found != "" {
		return nil, fmt.Errorf("the discovery document: its jwks_uri is %s", found)
	}
	// What is fetched in the clear is believed only from this machine, and an
	// issuer elsewhere has no word on what runs here.
	if u, err := url.Parse(location); err != nil || (u.Scheme == "http") != s.client.plainHTTP {
		return nil, errors.New("the discovery document: its jwks_uri is of another scheme than the issuer")
	}
	document, err := s.client.fetch(ctx, location)
	if err != nil {
		return nil, fmt.Errorf("the key set that it names: %w", err)
	}
	return document, nil
}
