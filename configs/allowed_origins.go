package configs

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// readOrigins reads a list of origins of web pages, each as a browser writes it: any
// other way to write it would never be met.
func readOrigins(n document.Node, into *[]string) {
	n.List("origins of web pages", func(_ int, item document.Node) {
		item.Matching("an origin of web pages, as a browser writes it", `^https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$`)
		if !item.IsString() || !originForm(item.Value) {
			item.Fail("found %s; expected the origin of a web page as a browser writes it: http:// or https:// and a host in lower case, with a port where it is not the usual one, such as https://app.example.com", item.Describe())
			return
		}
		*into = append(*into, item.Value)
	})
}

// readHosts reads a list of names by which the gateway is reached.
func readHosts(n document.Node, into *[]string) {
	n.List("names of the gateway", func(_ int, item document.Node) {
		item.Matching("a name or an address by which the gateway is reached, without a port",
			`^[a-z0-9_]$|^[a-z0-9_][a-z0-9_.-]*[a-z0-9_]$|^[0-9a-f.]*:[0-9a-f.:]*:[0-9a-f.:]*$`)
		if !item.IsString() || !hostForm(item.Value) {
			item.Fail("found %s; expected a name or an address by which the gateway is reached, in lower case and without a port, such as gateway.example.com", item.Describe())
			return
		}
		*into = append(*into, item.Value)
	})
}

// hostForm reports whether a name is written as it will be compared: in lower case, without
// a port, and an address of IPv6 without brackets.
func hostForm(s string) bool {
	if address, err := netip.ParseAddr(s); err == nil {
		return address.String() == s
	}
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(s, ".-") == s
}

// defaultPorts are the ports that a browser leaves out; read only.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

func originForm(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || defaultPorts[u.Scheme] == "" || u.Scheme+"://"+u.Host != s || strings.ToLower(s) != s {
		return false
	}
	// Names beyond ASCII are written in their ASCII form, and no origin has a space
	// or a star.
	if strings.Trim(u.Hostname(), "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" {
		return false
	}
	if !strings.Contains(strings.TrimPrefix(u.Host, "["+u.Hostname()+"]"), ":") {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && strconv.FormatUint(port, 10) == u.Port() && u.Port() != defaultPorts[u.Scheme]
}
