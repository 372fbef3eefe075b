# Four images from one build; debug is callgate with a shell:
#   docker build --target callgate -t callgate:local .
#   docker build --target debug -t callgate:local-debug .
#   docker build --target sampletool -t sampletool:local .
#   docker build --target samplemodel -t samplemodel:local .
ARG GO_VERSION=1.26

FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Printed by the command version; docs/releasing.md passes them.
ARG VERSION= COMMIT= DATE=
# nomsgpack leaves a codec out of gin that nothing here uses; without DWARF, which the linker strips,
# the compiler takes less time.
RUN CGO_ENABLED=0 go build -trimpath -tags nomsgpack -gcflags=all=-dwarf=false -ldflags "-s -w -X main.linkedVersion=${VERSION} -X main.linkedCommit=${COMMIT} -X main.linkedDate=${DATE}" -o /out/ ./cmd/callgate
RUN CGO_ENABLED=0 go build -C tools -trimpath -ldflags "-s -w" -o /out/ ./sampletool ./samplemodel
# An empty folder for the data: what is copied into the image gives a new volume
# its owner.
RUN mkdir /out/data

FROM scratch AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532

FROM base AS sampletool
COPY --from=build /out/sampletool /sampletool
EXPOSE 9000
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/sampletool", "healthcheck", "--listen", "127.0.0.1:9000"]
ENTRYPOINT ["/sampletool"]
CMD ["--listen", "0.0.0.0:9000"]

FROM base AS samplemodel
COPY --from=build /out/samplemodel /samplemodel
EXPOSE 9001
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/samplemodel", "healthcheck", "--listen", "127.0.0.1:9001"]
ENTRYPOINT ["/samplemodel"]
CMD ["--listen", "0.0.0.0:9001"]

# To look into a volume or a network, never to serve for long: a shell, and what busybox has.
FROM busybox:1.37 AS debug
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/callgate /callgate
COPY --from=build --chown=65532:65532 /out/data /var/lib/callgate
USER 65532:65532
WORKDIR /var/lib/callgate
VOLUME ["/var/lib/callgate"]
EXPOSE 8080
ENTRYPOINT ["/callgate"]
CMD ["serve", "--config", "/etc/callgate/callgate.yaml"]

# The last stage is what a build without --target makes.
FROM base AS callgate
COPY --from=build /out/callgate /callgate
COPY --from=build --chown=65532:65532 /out/data /var/lib/callgate
# The data of the built-in configuration starts here. Any other one names this folder
# as its data_dir, since nothing can be written beside files that are mounted.
WORKDIR /var/lib/callgate
VOLUME ["/var/lib/callgate"]
EXPOSE 8080
# By address, not by --config: a bad edit of a file is no ill health of the
# process, which goes on with what it had.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/callgate", "healthcheck", "--address", "127.0.0.1:8080"]
ENTRYPOINT ["/callgate"]
CMD ["serve", "--config", "/etc/callgate/callgate.yaml"]
