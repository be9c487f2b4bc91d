# Hands the manifest $2 of the job $1 to Kubernetes, with the secret in the file $3, which is in no manifest; follows it to its end, and
# leaves in $4 the record that the first pod prints. In the end, or asked to end, it takes all of it away.
stopped=
trap 'stopped=1' TERM
(trap '' TERM && kubectl create secret generic "$1" --from-file=token="$3") || exit
trap 'kubectl delete --ignore-not-found --wait=false "job/$1" "service/$1" "secret/$1"' EXIT
kubectl apply -f "$2" || exit
while [ -z "$stopped" ]; do
    sleep 0.5
    # Other words may come of a moment in which nobody answers.
    case $(kubectl get job "$1" --output='jsonpath={.status.conditions[*].type}' 2>&1) in
    *Complete* | *Failed* | *NotFound*) break ;;
    esac
done
# What the pod had to say stands around it.
kubectl logs --tail=-1 --selector="job-name=$1,batch.kubernetes.io/job-completion-index=0" | sed -n '/^{$/,/^}$/p' >"$4.part"
[ -s "$4.part" ] && mv "$4.part" "$4"
