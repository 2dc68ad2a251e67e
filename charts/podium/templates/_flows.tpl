{{/*
The flows of the design's table, and the notation of each NetworkPolicy. A flow that leaves or enters the release is
open exactly while `networkPolicy.<flow>.peers` names somebody.
*/}}

{{/* Flows between pods of the release: from, to, ports. */}}
{{- define "podium.internalFlows" -}}
- {from: gateway, to: conductor, ports: [7051]}
- {from: gateway, to: router, ports: [7052]}
{{- if eq .Values.conductor.engine "worker" }}
- {from: conductor, to: router, ports: [7052]}
{{- end }}
- {from: gateway, to: audit, ports: [7053]}
- {from: conductor, to: audit, ports: [7053]}
- {from: router, to: audit, ports: [7053]}
- {from: test, to: gateway, ports: [8080]}
{{- if .Values.networkPolicy.spansToAudit }}
- {from: gateway, to: audit, ports: [4317]}
- {from: conductor, to: audit, ports: [4317]}
- {from: router, to: audit, ports: [4317]}
- {from: audit, to: audit, ports: [4317]}
{{- end }}
{{- if .Values.demo.enabled }}
- {from: router, to: demo, ports: [8000]}
{{- end }}
{{- if .Values.witness.enabled }}
- {from: audit, to: witness, ports: [7061]}
{{- end }}
{{- end }}

{{/*
Flows with the world outside: name, the value that opens it, which pods, direction, ports. Ingress goes to the ports
that Podium listens on; egress to those that the value names.
*/}}
{{- define "podium.externalFlows" -}}
- {name: clients, pods: [gateway], direction: Ingress, ports: [8080]}
- {name: ingress-controller, value: ingressController, pods: [gateway], direction: Ingress, ports: [8080]}
- {name: readers, pods: [audit], direction: Ingress, ports: [8081]}
- {name: span-senders, value: spanSenders, pods: [audit], direction: Ingress, ports: [4317, 4318]}
- {name: prometheus, pods: [gateway, conductor, router, audit], direction: Ingress, ports: [9464]}
- {name: trainers-to-router, value: trainers, pods: [router], direction: Ingress, ports: [7052]}
- {name: trainers-to-audit, value: trainers, pods: [audit], direction: Ingress, ports: [7053]}
- {name: providers, pods: [router], direction: Egress}
- {name: workers, pods: [router], direction: Egress}
- {name: database, pods: [audit, migration], direction: Egress}
- {name: witnesses, pods: [audit], direction: Egress}
- {name: time-stamp-authority, value: timeStampAuthority, pods: [audit], direction: Egress}
- {name: worm-storage, value: wormStorage, pods: [audit], direction: Egress}
- {name: oidc-issuer, value: oidcIssuer, pods: [gateway, audit], direction: Egress}
- {name: kubernetes-api, value: kubernetesApi, pods: [router, gateway, audit], direction: Egress}
- {name: otlp-collector, value: otlpCollector, pods: [gateway, conductor, router, audit], direction: Egress}
{{- end }}

{{/* Pods of the release, of the named components or (none named) of all. Takes root, components. */}}
{{- define "podium.podsOf" -}}
matchLabels:
  app.kubernetes.io/name: {{ include "podium.name" .root }}
  app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- if .components }}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: {{ .components | toJson }}}
{{- end }}
{{- end }}

{{/* Where names are asked for. Takes root. */}}
{{- define "podium.dnsPeers" -}}
{{- $dns := .Values.networkPolicy.dns }}
{{- toYaml $dns.peers }}
{{- with $dns.nodeLocalAddress }}
{{- if eq . "169.254.169.254" }}
{{- fail "networkPolicy.dns.nodeLocalAddress: 169.254.169.254 is the metadata service of the cloud; name the address of NodeLocal DNSCache, such as 169.254.20.10" }}
{{- end }}
- ipBlock:
    cidr: {{ . }}/32
{{- end }}
{{- end }}

{{- define "podium.flowPorts" -}}
{{- range . }}
- {protocol: TCP, port: {{ int . }}}
{{- end }}
{{- end }}

{{/*
Peers as a value gives them, with one addition: no address block reaches the cloud's metadata service, whoever wrote
it. Takes flow, peers.
*/}}
{{- define "podium.flowPeers" -}}
{{- $flow := .flow }}
{{- range .peers }}
{{- if hasKey . "ipBlock" }}
{{- $block := dict "flow" $flow "cidr" .ipBlock.cidr "except" (.ipBlock.except | default list) }}
- ipBlock:
    cidr: {{ .ipBlock.cidr | quote }}
    {{- with include "podium.excepted" $block | fromYamlArray }}
    except:
      {{- range . }}
      - {{ . | quote }}
      {{- end }}
    {{- end }}
{{- else }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What a block leaves out: what was asked for, and whatever lies inside of the metadata addresses of the clouds. Those are
link-local (AWS, Google Cloud, Azure, Oracle: 169.254.169.254), but for Azure's 168.63.129.16, Alibaba's
100.100.100.200, Oracle's 192.0.0.192 and, by IPv6, AWS' fd00:ec2::254 and Google's fd20:ce::254.
*/}}
{{- define "podium.excepted" -}}
{{- $cidr := .cidr }}
{{- $found := .except }}
{{- if not (contains ":" $cidr) }}
{{- range list "169.254.0.0/16" "168.63.129.16/32" "100.100.100.200/32" "192.0.0.192/32" }}
{{- if eq (include "podium.blockHolds" (list . $cidr)) "yes" }}
{{- fail (printf "networkPolicy.%s: %s lies in %s, where clouds keep their metadata service; leave it out" $.flow $cidr .) }}
{{- else if eq (include "podium.blockHolds" (list $cidr .)) "yes" }}
{{- $found = append $found . }}
{{- end }}
{{- end }}
{{- else if eq $cidr "::/0" }}
{{- $found = concat $found (list "fe80::/10" "fd00:ec2::254/128" "fd20:ce::254/128") }}
{{- else if not (regexMatch "^([23][0-9a-f]{3}:|fd[0-9a-f]{2}:.*/(4[89]|[5-9][0-9]|1[0-2][0-9])$)" $cidr) }}
{{- fail (printf "networkPolicy.%s: %s is too wide: name ::/0, a global block (2000::/3) or a private one of at least 48 bits" .flow $cidr) }}
{{- else if regexMatch "^(fd00:0*ec2:|fd20:0*ce:)" $cidr }}
{{- fail (printf "networkPolicy.%s: %s holds the metadata address of a cloud; leave it out" .flow $cidr) }}
{{- end }}
{{- range uniq $found }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Whether the first of two IPv4 blocks holds the second. */}}
{{- define "podium.blockHolds" -}}
{{- $outer := splitList "/" (index . 0) }}
{{- $inner := splitList "/" (index . 1) }}
{{- $size := 1 }}
{{- range until (int (sub 32 (int (index $outer 1)))) }}
{{- $size = mul $size 2 }}
{{- end }}
{{- $same := eq (div (include "podium.addressNumber" (index $outer 0) | int64) $size) (div (include "podium.addressNumber" (index $inner 0) | int64) $size) }}
{{- if and $same (ge (int (index $inner 1)) (int (index $outer 1))) }}yes{{ else }}no{{ end }}
{{- end }}

{{- define "podium.addressNumber" -}}
{{- $number := 0 }}
{{- range splitList "." . }}
{{- $number = add (mul $number 256) (int64 .) }}
{{- end }}
{{- $number }}
{{- end }}

{{/* Refuse an installation whose services could not reach what they need. */}}
{{- define "podium.checkFlows" -}}
{{- $policy := .Values.networkPolicy }}
{{- if and (include "podium.onPostgres" .) (not $policy.database.peers) }}
{{- fail "database.existingSecret is set, and no network policy lets audit reach it: name the database in networkPolicy.database.peers, or set networkPolicy.enabled=false" }}
{{- end }}
{{- if and (eq .Values.pool.source "resources") (not $policy.kubernetesApi.peers) }}
{{- fail "pool.source=resources needs the API server: name its addresses (`kubectl get endpoints kubernetes`) in networkPolicy.kubernetesApi.peers, or set networkPolicy.enabled=false" }}
{{- end }}
{{- if and .Values.ingress.enabled (not $policy.ingressController.peers) }}
{{- fail "ingress.enabled=true, and no network policy lets the ingress controller reach the gateway: name it in networkPolicy.ingressController.peers, or set networkPolicy.enabled=false" }}
{{- end }}
{{- if and .Values.otlp.endpoint (not $policy.otlpCollector.peers) (not $policy.spansToAudit) }}
{{- fail "otlp.endpoint is set, and no network policy lets the services reach it: name the collector in networkPolicy.otlpCollector.peers, or set networkPolicy.spansToAudit=true for this release's own audit" }}
{{- end }}
{{- if and $policy.spansToAudit (not .Values.audit.spans.enabled) }}
{{- fail "networkPolicy.spansToAudit=true needs audit.spans.enabled=true: audit listens for no spans" }}
{{- end }}
{{- end }}
