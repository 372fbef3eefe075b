package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/outbound"
)

const (
	fetchTimeout = 30 * time.Second
	maxRedirects = 3
)

// isWebURL reports whether an argument is a URL and no file.
func isWebURL(argument string) bool {
	return strings.HasPrefix(argument, "https://") || strings.HasPrefix(argument, "http://")
}

// errStatus is an answer that is no document.
var errStatus = errors.New("found no document")

// fetch gets a document of definitions from a URL that the operator typed, and says on standard error where it
// came from and its digest. Plain HTTP is for loopback alone. A name must lead to public addresses, also after a
// redirect; an address, and localhost, may be the one that was typed.
func fetch(ctx context.Context, e env, address string) (location *url.URL, data []byte, err error) {
	typed, err := url.Parse(address)
	if err != nil || typed.Host == "" || typed.User != nil {
		return nil, nil, errors.New("expected a URL without user info, such as https://api.example.com/openapi.json")
	}
	if err := checkFetched(typed); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	transport := &http.Transport{ // no proxy
		DisableKeepAlives:   true,
		TLSHandshakeTimeout: fetchTimeout,
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			return outbound.Dial(ctx, network, to, typedAddresses(typed, to))
		},
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > maxRedirects {
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		}
		next.Header.Del("Referer")
		fmt.Fprintf(e.Stderr, "redirected to %s\n", shownURL(next.URL))
		return checkFetched(next.URL)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, typed.String(), nil)
	if err != nil {
		return nil, nil, errors.New("the URL cannot be requested")
	}
	request.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot fetch %s: %w", shownURL(typed), fetchReason(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("cannot fetch %s: %w, but HTTP status %d", shownURL(typed), errStatus, response.StatusCode)
	}
	data, err = io.ReadAll(io.LimitReader(response.Body, maxImportBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot fetch %s: %w", shownURL(typed), fetchReason(err))
	}
	if len(data) > maxImportBytes {
		return nil, nil, fmt.Errorf("%s is larger than %d MiB", shownURL(typed), maxImportBytes>>20)
	}
	fmt.Fprintf(e.Stderr, "fetched %s: %d bytes, sha256:%x\n", shownURL(response.Request.URL), len(data), sha256.Sum256(data))
	return response.Request.URL, data, nil
}

// documentPlaces are where servers usually have their document.
var documentPlaces = []string{"/openapi.json", "/openapi.yaml", "/swagger.json", "/v3/api-docs"}

// fetchFromServer gets the document of a running server from the first place that has one, and says which.
func fetchFromServer(ctx context.Context, e env, server string) (location *url.URL, data []byte, err error) {
	for _, place := range documentPlaces {
		location, data, err = fetch(ctx, e, strings.TrimSuffix(server, "/")+place)
		if !errors.Is(err, errStatus) {
			return location, data, err
		}
	}
	return nil, nil, fmt.Errorf("%s has no document at %s", server, strings.Join(documentPlaces, ", "))
}

// checkFetched reports a URL that nothing is fetched from.
func checkFetched(u *url.URL) error {
	if u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !netx.IsLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%s://%s is not fetched: expected https, or http on this machine, without user info", u.Scheme, u.Host)
	}
	return nil
}

// typedAddresses are the addresses that may be connected to beyond public ones: those that the operator typed.
func typedAddresses(typed *url.URL, to string) []string {
	host, _, err := net.SplitHostPort(to)
	switch {
	case err != nil || host != typed.Hostname():
		return nil
	case host == "localhost":
		return []string{"127.0.0.0/8", "::1/128"}
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return []string{address.String()}
	}
	return nil
}

// shownURL is a URL for messages: a query may hold a key.
func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}

// fetchReason is an error without the URL, which fetch states.
func fetchReason(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no answer within %s", duration.Spell(fetchTimeout))
	}
	if reason := netx.Describe(err); reason != "" {
		return errors.New(reason)
	}
	var requested *url.Error
	if errors.As(err, &requested) {
		return requested.Err
	}
	return err
}
