package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/refusal"
)

// pages reads every page of a list.
func (a *adminAPI) pages(ctx context.Context, path, member string, query url.Values, each func(json.RawMessage) error) error {
	if err := a.open(); err != nil {
		return err
	}
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		var page map[string]json.RawMessage
		if err := a.ask(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		var items []json.RawMessage
		if err := json.Unmarshal(page[member], &items); err != nil {
			return cli.PeerError{Err: fmt.Errorf("the answer has no list %s", member)}
		}
		for _, item := range items {
			if err := each(item); err != nil {
				return err
			}
		}
		next := strings.Trim(string(page["next"]), `"`) // a text or a number
		if next == "" || next == "null" || next == query.Get("after") || len(items) == 0 {
			return nil
		}
		query.Set("after", next)
	}
}

// pageSize is how many entries one request asks for.
const pageSize = 200

func approvalPath(id string) string { return "/v1/approvals/" + url.PathEscape(id) }

// adminAPI is a client of the admin API of one gateway.
type adminAPI struct {
	env
	config, url, keyFile string
	key                  string // empty where the gateway needs none
}

// keyVariable is the environment's credential.
const keyVariable = "CALLGATE_KEY"

const (
	adminTimeout   = 30 * time.Second
	maxAdminAnswer = 16 << 20
)

// add gives a command the flags that say which gateway is asked, and by whom.
func (a *adminAPI) add(c *cobra.Command) *cobra.Command {
	configFlag(c, &a.config)
	c.Flags().StringVar(&a.url, "url", "", "the `URL` of the gateway's admin listener (default: server.admin_listen of the configuration)")
	c.Flags().StringVar(&a.keyFile, "key-file", "", "the `FILE` that holds your key or token (default: the variable "+keyVariable+")")
	_ = c.MarkFlagFilename("key-file") // the flag is there
	return c
}

// open finds the gateway and the credential.
func (a *adminAPI) open() error {
	if a.url == "" {
		loaded, err := a.Load(a.config)
		if err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(loaded.Server.AdminListen)
		if err != nil {
			return err
		}
		if netx.IsUnspecifiedHost(host) {
			host = "127.0.0.1"
		}
		a.url = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(a.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--url is no URL of a gateway; expected one such as https://ops.example or http://127.0.0.1:9090")
	}
	a.url = strings.TrimSuffix(a.url, "/")
	a.key = os.Getenv(keyVariable)
	if a.keyFile != "" {
		data, err := document.ReadFile(a.keyFile)
		if err != nil {
			return fmt.Errorf("--key-file %s: %w", a.keyFile, err)
		}
		if a.key = strings.TrimRight(string(data), "\r\n"); a.key == "" {
			return fmt.Errorf("--key-file %s is empty; expected a key", a.keyFile)
		}
	}
	return nil
}

// ask sends a request, and reads the answer into a value. A refusal of the gateway is said on
// standard error, and is cli.ErrRefused; that nothing answers as a gateway does is a
// cli.PeerError.
func (a *adminAPI) ask(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return cli.InternalError{Err: err}
		}
		content = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		request.Header.Set("Authorization", "Bearer "+a.key)
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
	}
	response, err := client.Do(request)
	if err != nil {
		return cli.PeerError{Err: fmt.Errorf("the gateway does not answer: %w", err)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAdminAnswer+1))
	switch {
	case err != nil:
		return cli.PeerError{Err: fmt.Errorf("the gateway's answer broke off: %w", err)}
	case len(text) > maxAdminAnswer:
		return cli.PeerError{Err: errors.New("the gateway's answer is too long")}
	case response.StatusCode != http.StatusOK:
		return a.refused(response.StatusCode, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return cli.PeerError{Err: errors.New("the server at " + a.url + " is not the admin API of a gateway")}
	}
	return nil
}

// refused says why a request was refused.
func (a *adminAPI) refused(status int, text []byte) error {
	var answer struct {
		Result struct {
			Output struct{ Error *refusal.Error } `json:"output"`
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Result.Output.Error == nil {
		return cli.PeerError{Err: fmt.Errorf("the server at %s is not the admin API of a gateway: status %d", a.url, status)}
	}
	refused := answer.Result.Output.Error
	if status >= http.StatusInternalServerError {
		return cli.PeerError{Err: fmt.Errorf("%s: %s", shownText(string(refused.Code)), shownText(refused.Message))}
	}
	fmt.Fprintf(a.Stderr, "%s: %s\n", shownText(string(refused.Code)), shownText(refused.Message))
	if refused.Code == refusal.Unauthenticated && a.key == "" {
		fmt.Fprintf(a.Stderr, "no key was sent: use --key-file, or the variable %s\n", keyVariable)
	}
	return cli.ErrRefused
}
