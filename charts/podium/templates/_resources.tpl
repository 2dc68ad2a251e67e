{{/*
The pool as resources (pool.source=resources): the token, the settings and the mounts of those who read Worker, Tenant
and Policy objects.
*/}}

{{- define "podium.fromResources" -}}
{{- if eq .Values.pool.source "resources" }}true{{ end }}
{{- end }}

{{- define "podium.statusLease" -}}
{{ include "podium.fullname" . }}-router-status
{{- end }}

{{/* Where the router has its workers from, as YAML of its settings. */}}
{{- define "podium.poolSettings" -}}
{{- if include "podium.fromResources" . }}
POOL_SOURCE: kubernetes
CLUSTER_NAMESPACE: {{ .Release.Namespace }}
PROVIDER_KEYS_DIR: /etc/podium/provider-keys
POOL_STATUS_LEASE: {{ include "podium.statusLease" . }}
{{- else }}
POOL_FILE: /etc/podium/config/pool.yaml
{{- end }}
{{- end }}

{{/* Where gateway and audit have their tenants from. */}}
{{- define "podium.tenantsSettings" -}}
{{- if include "podium.fromResources" . }}
TENANTS_SOURCE: kubernetes
CLUSTER_NAMESPACE: {{ .Release.Namespace }}
{{- else }}
TENANTS_FILE: /etc/podium/config/tenants.yaml
{{- end }}
{{- end }}

{{/* The service account's token, for those three pods and for an hour at a time; the client reads it again. */}}
{{- define "podium.tokenMount" -}}
- {name: cluster, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{- define "podium.tokenVolume" -}}
- name: cluster
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap:
          name: kube-root-ca.crt
          items:
            - {key: ca.crt, path: ca.crt}
{{- end }}
