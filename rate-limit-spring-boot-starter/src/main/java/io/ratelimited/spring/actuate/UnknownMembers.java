package io.ratelimited.spring.actuate;

import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.OperationType;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvoker;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.invoke.OperationParameters;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;

/**
 * Refuses a change of a limit with a member that does not exist, which Spring Boot would ignore: a misspelt {@code burst}
 * beside a {@code rate} would change half of what was meant. Refuses any request with a member or parameter in the place
 * of its path: another limit or key than the path names would be meant.
 */
final class UnknownMembers implements OperationInvokerAdvisor {

    private static final EndpointId ENDPOINT = EndpointId.of("ratelimits");
    /** The parameter that has the path. */
    private static final String PATH = "path";
    /** What says which limit is meant, over HTTP and over JMX, and is no member of it. */
    private static final Set<String> SELECTORS = Set.of(PATH, "name");

    @Override
    public OperationInvoker apply(
            EndpointId endpoint, OperationType operation, OperationParameters parameters, OperationInvoker invoker) {
        if (!endpoint.equals(ENDPOINT)) {
            return invoker;
        }
        Set<String> declared = new TreeSet<>();
        parameters.forEach(parameter -> declared.add(parameter.getName()));
        Set<String> members = new TreeSet<>(declared);
        members.removeAll(SELECTORS);
        return context -> {
            Set<String> unknown = new TreeSet<>();
            if (operation == OperationType.WRITE) {
                unknown.addAll(context.getArguments().keySet());
                unknown.removeAll(declared);
            }
            if (declared.contains(PATH) && !(context.getArguments().get(PATH) instanceof String[])) {
                unknown.add(PATH);
            }
            return unknown.isEmpty()
                    ? invoker.invoke(context)
                    : new WebEndpointResponse<>(
                            Map.of(
                                    "error",
                                    "a limit has no " + unknown + "; use some of " + members + "; nothing was changed"),
                            WebEndpointResponse.STATUS_BAD_REQUEST);
        };
    }
}
