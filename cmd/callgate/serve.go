package main

import (
	"log"
	"log/slog"

	"github.com/gin-gonic/gin"
	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/internal/terminal"
)

func newServe(e env) *cobra.Command {
	var config string
	format, level := formatFlag(""), levelFlag(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway: applications on server.listen; metrics, the admin API and the console on
server.admin_listen. The log is on standard error; log.requests says which requests have a
line.

The configuration is reloaded when its files change, or on SIGHUP. One that does not load
changes nothing; the fault is in the log, the metrics, and /readyz of the admin listener.
SIGTERM and SIGINT drain: readiness ends, new connections are refused, calls in flight finish.`,
		Example: `  callgate serve --config callgate.yaml --log-level warn
  curl -s http://127.0.0.1:8080/v1/calls -H 'Content-Type: text/plain' \
      -d '{"tool":{"name":"time.now","arguments":{}}}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format == "" {
				format = "json"
				if terminal.IsTerminal(e.Stderr) {
					format = "text"
				}
			}
			gin.SetMode(gin.ReleaseMode)
			lines := app.NewLogWriter(e.Stderr)
			defer func() { _ = lines.Close() }() // where this fails, no place is left to report it
			o := runtimeOptions(e, newLog(lines.Direct(), format, level))
			o.RequestLog = newLog(lines, format, level)
			// net/http and its clients write what peers sent to the standard logger.
			log.SetOutput(discardedLines{o.Logger})
			log.SetFlags(0)
			app.TuneMemory(o.Logger)
			loaded, err := e.loadBy(reload.Load, config)
			if err != nil {
				return err
			}
			return app.Serve(c.Context(), mainFile(loaded), loaded, o)
		},
	}
	configFlag(c, &config)
	c.Flags().Var(&format, "log-format", "log in this `FORMAT`: json or text (default: text on a terminal, else json)")
	c.Flags().Var(&level, "log-level", "log this `LEVEL` and above: debug, info, warn (only problems) or error")
	// Flags that were just added can be completed.
	_ = c.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// discardedLines keeps what libraries log out of the log, but for the fact: it may
// hold bytes of a peer.
type discardedLines struct{ logger *slog.Logger }

func (d discardedLines) Write(p []byte) (int, error) {
	d.logger.Debug("a library logged a line", "bytes", len(p))
	return len(p), nil
}
