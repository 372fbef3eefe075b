package capture

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/callgate/callgate/internal/netx"
)

// Options are those of a proxy.
type Options struct {
	Upstream *url.URL // of the provider: scheme, host and what stands before every path
	Folder   string   // of the files; it exists
	Bodies   bool     // record whole bodies, too
	Requests int      // stop after so many requests to a known API; 0 is no bound
	// AnyHost lets requests in whose Host or Origin is not of loopback. It is for listeners beyond loopback.
	AnyHost bool
	// Log is told in one line what was recorded, and what was not. It must be safe for concurrent use.
	Log func(line string)

	stopTimeout time.Duration // 0 is stopTimeout
}

// CheckUpstream reports a URL that no requests can be sent to. Plain HTTP beyond loopback would show the credentials
// of the application to the network.
func CheckUpstream(text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("--upstream: expected a URL such as https://api.openai.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("--upstream: expected a URL without user info, a query or a fragment")
	case u.Scheme == "http" && !insecure && !netx.IsLoopbackHost(u.Hostname()):
		return nil, fmt.Errorf("--upstream: %s would get the application's credentials without encryption; expected https, or --insecure-http", u.Host)
	}
	return u, nil
}
