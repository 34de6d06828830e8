package io.ratelimited.spring.autoconfigure.client;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import okhttp3.OkHttpClient;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Role;

/**
 * Where no call is limited, because limits are disabled or no property names a client, the interceptor admits each: code that
 * adds it to its client depends on the bean.
 */
@AutoConfiguration(after = ClientRateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass(OkHttpClient.class)
public final class UnlimitedOkHttpAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitInterceptor")
    @ConditionalOnMissingBean
    RateLimitInterceptor rateLimitInterceptor() {
        return chain -> chain.proceed(chain.request());
    }
}
